#!/usr/bin/env python3
"""Writes tokenizer_json_cases.json: small tokenizers as tokenizer.json files, in the manner of the families,
and what the `tokenizers` package (0.23.3 made the committed file) makes of many strings.

    pip install tokenizers
    python3 test/lib/Import/generate_tokenizer_json_cases.py [TRAINING.txt]

The committed file was trained on Northanger Abbey (Jane Austen, public domain); without a text its vocabularies stay. A case is one of three
vocabularies with the steps around it, which are those of the families' own files.
"""
import copy
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

MARK = "\u2581"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
            r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]


def byte_level(prefix=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split}


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
LEGACY = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, REPLACE]}
SPACES = {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
STRIPPED = copy.deepcopy(SPACES)
STRIPPED["decoders"].append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
PIECES = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, metaspace("always", True)]}

# name: vocabulary, what differs from it
CASES = {
    "gpt2": ("bytes", {"pre_tokenizer": byte_level()}),
    "gpt2-prefix": ("bytes", {"pre_tokenizer": byte_level(prefix=True)}),
    "stablelm": ("bytes", {"normalizer": {"type": "NFC"}, "pre_tokenizer": byte_level()}),
    "llama3": ("bytes", {"pre_tokenizer": sequence(split(LLAMA3), byte_level(regex=False)), "ignore_merges": True}),
    "qwen2": ("bytes", {"normalizer": {"type": "NFC"}, "pre_tokenizer": sequence(split(QWEN2), byte_level(regex=False))}),
    "smollm": ("bytes", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, byte_level())}),
    "o200k": ("bytes", {"pre_tokenizer": sequence(split(O200K, "Removed", True), byte_level(regex=False))}),
    "deepseek": ("bytes", {"normalizer": {"type": "Sequence", "normalizers": []},
                           "pre_tokenizer": sequence(*map(split, DEEPSEEK), byte_level(regex=False))}),
    "falcon": ("bytes", {"pre_tokenizer": sequence({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(),
                                                   {"type": "Digits", "individual_digits": False},
                                                   split("[0-9][0-9][0-9]"))}),
    "llama2": ("letters", {"normalizer": LEGACY, "decoder": STRIPPED}),
    "mistral": ("letters", {"pre_tokenizer": metaspace("first", False), "decoder": STRIPPED}),
    "first-split": ("letters", {"pre_tokenizer": metaspace("first", True), "decoder": STRIPPED}),
    "first-pieces": ("pieces", {"pre_tokenizer": metaspace("first", True), "decoder": PIECES}),
    "first-after-digits": ("letters", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True},
                                                                 metaspace("first", False)), "decoder": STRIPPED}),
    "never": ("letters", {"pre_tokenizer": metaspace("never", True), "decoder": SPACES}),
    "always": ("letters", {"pre_tokenizer": metaspace("always", True), "decoder": PIECES}),
    "gemma": ("letters", {"normalizer": REPLACE, "pre_tokenizer": split(" ", "MergedWithPrevious", kind="String"),
                          "decoder": SPACES}),
    "no-bytes": ("letters", {"normalizer": LEGACY, "decoder": STRIPPED, "byte_fallback": False}),
    "runs-apart": ("letters", {"normalizer": LEGACY, "decoder": STRIPPED, "byte_fallback": False, "fuse_unk": False}),
    "folded": ("letters", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Strip", "strip_left": True,
                                                                           "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}]},
        "pre_tokenizer": metaspace("always", True), "decoder": STRIPPED}),
    "unigram": ("pieces", {"normalizer": {"type": "NFKC"}, "pre_tokenizer": metaspace("always", True), "decoder": PIECES}),
    "unigram-bytes": ("pieces", {"normalizer": REPLACE, "decoder": SPACES, "byte_fallback": True}),
}
# One behaviour of Split each, on a pattern that can match nothing at one place.
for behaviour in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
    for invert in [False, True]:
        CASES[f"split-{behaviour}{'-inverted' if invert else ''}"] = (
            "bytes", {"pre_tokenizer": sequence(split(r"\s|[a-c]{2}|(?=[A-Z])", behaviour, invert),
                                                byte_level(regex=False))})

ADDED = [("<|end|>", {}), ("<|end|>|>", {}), ("<left>", {"lstrip": True}), ("<right>", {"rstrip": True}),
         ("<both>", {"lstrip": True, "rstrip": True})]
USER = [("<tool>", {}), ("word", {"single_word": True}), ("Big One", {"normalized": True}),
        ("caf\u00e9", {"normalized": True})]

TEXTS = [
    "", " ", "  ", "\n", "\r\n", " \n ", "a", " a", "a ", "Hello  world", "don't DON'T we'LL they'Re I'm",
    "it'\u017f IT'\u017f", "12345678 1,234.5", "\u0664\u0665\u0666 \u2167 \u00bd\u00b2", "\t\tif (x == 1) {\n\t\treturn;\n\t}\n",
    "a\u0085b \u0085", "a\u180eb \u180e c", "a\u00a0b\u2003\u3000c", "e\u0301 \u00e9 \u1e69 s\u0323\u0307 s\u0307\u0323",
    "\u212b \u2126 \ufb01", "\u65e5\u672c\u8a9e\u3002\u30c6\u30b9\u30c8 \u4e2d\u6587", "\U0001f468\u200d\U0001f469 ok",
    "!!!???", " !a !1", "...\n\n...", "a \n \n b", "trailing   ", "snake_case camelCase HTTPServer",
    "<|end|>", "a<|end|>b", "<|end|>|>", " <tool> ", "x <left> y", "x <right> y", "x  <both>  y <both>z",
    "word words a word. sword", "the Big One is", "caf\u00e9 cafe\u0301 CAF\u00c9", "\x00\x01\x7f", MARK + "a" + MARK + MARK,
    "<s>Once upon", " <left> <right> ", "abAB bcBC cabABC",
]


def random_texts(count):
    pool = ("aZ\u00e9\u4e2d\u0923\u01c5 \t\n\r\u00a0\u2003\u0085019\u0663\u2160\u00bd.,!'\"$+<|>_-\u0301\u0327\u200d"
            "\U0001f600stdmrevl")
    rng = random.Random(2)
    return ["".join(rng.choice(pool) for _ in range(rng.randint(2, 12))) for _ in range(count)]


def train(training, model, pre_tokenizer, trainer, normalizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.train([training], trainer)
    return json.loads(tokenizer.to_str())


def vocabularies(training):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    data = train(training, models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False),
                 trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False))
    data["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    out = {"bytes": data}
    data = train(training, models.BPE(unk_token="<unk>"), pre_tokenizers.Metaspace(),
                 trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False))
    vocab = data["model"]["vocab"]
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    data["model"].update(byte_fallback=True, fuse_unk=True)
    out["letters"] = data
    data = train(training, models.Unigram(), pre_tokenizers.Metaspace(),
                 trainers.UnigramTrainer(vocab_size=250, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False))
    data["model"]["vocab"] += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    out["pieces"] = data
    for data in out.values():
        data["added_tokens"] = []
        data["pre_tokenizer"] = data["normalizer"] = None
        start = len(data["model"]["vocab"])
        if data["model"].get("unk_token") or "unk_id" in data["model"]:
            data["added_tokens"].append({"id": 0, "content": "<unk>", "single_word": False, "lstrip": False,
                                         "rstrip": False, "normalized": False, "special": True})
        for special, tokens in [(True, ADDED), (False, USER)]:
            for content, flags in tokens:
                entry = {"id": start, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                         "normalized": False, "special": special}
                entry.update(flags)
                data["added_tokens"].append(entry)
                start += 1
    return out


def main():
    path = pathlib.Path(__file__).with_name("tokenizer_json_cases.json")
    bases = vocabularies(sys.argv[1]) if sys.argv[1:] else json.loads(path.read_text(encoding="utf-8"))["vocabularies"]
    texts = TEXTS + random_texts(40)
    out = {"vocabularies": bases, "texts": texts, "cases": []}
    for name, (base, changes) in CASES.items():
        data = copy.deepcopy(bases[base])
        for key, value in changes.items():
            (data if key in ("normalizer", "pre_tokenizer", "decoder") else data["model"])[key] = value
        tokenizer = Tokenizer.from_str(json.dumps(data))
        case = {"name": name, "vocabulary": base, "changes": changes, "special": [], "plain": [], "decoded": []}
        foreign = {token["id"] for token in data["added_tokens"] if token["normalized"]}
        for text in texts:
            tokenizer.encode_special_tokens = False
            special = tokenizer.encode(text, add_special_tokens=False).ids
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            case["special"].append(special)
            case["plain"].append(plain if plain != special else None)
            # The package decodes added tokens as if they were spelled in the model's own alphabet.
            case["decoded"].append(None if foreign.intersection(plain) else tokenizer.decode(plain, skip_special_tokens=True))
        out["cases"].append(case)
    # A case a line, so that changes can be read.
    with path.open("w", encoding="utf-8") as file:
        file.write("{\n")
        for key in ("vocabularies", "texts"):
            file.write(json.dumps(key) + ":" + json.dumps(out[key], separators=(",", ":")) + ",\n")
        file.write('"cases":[\n')
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in out["cases"]))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
