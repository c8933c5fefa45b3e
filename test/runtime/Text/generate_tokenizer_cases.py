#!/usr/bin/env python3
"""Writes tokenizer_cases.json: a small byte-level BPE vocabulary and what the `tokenizers` package
(0.23.3 made the committed file) makes of many strings under each family's pre-tokenizer.

    pip install tokenizers
    python3 test/runtime/Text/generate_tokenizer_cases.py TRAINING.txt

The committed file was trained on Northanger Abbey (Jane Austen, public domain). The patterns below
are those of the families' tokenizer.json files.
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


FAMILIES = {
    "gpt-2": (pre_tokenizers.ByteLevel(add_prefix_space=False), None),
    "llama3": (split(LLAMA3), None),
    "qwen2": (split(QWEN2), normalizers.NFC()),
    "smollm": (pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)]), None),
}
SPECIAL = ["<|end|>", "<|end|>|>", "<tool>"]
UNREACHABLE = ["Ġunreachable", "zebra"]  # tokens that no merge makes: ignore_merges finds them

WRITTEN = [
    "", " ", "  ", "\n", "\r\n", " \n ", "a", " a", "a ", "Hello  world", "don't DON'T we'LL they'Re I'm",
    "it'\u017f IT'\u017f", "'", "''s", "x'ss", "12345678 1,234.5", "\u0664\u0665\u0666 \u2167 \u00bd\u00b2",
    "\t\tif (x == 1) {\n\t\treturn;\n\t}\n", "a\u0085b \u0085", "a\u180eb \u180e c", "a\u00a0b\u2003\u3000c",
    "\u2028\u2029x", "e\u0301 \u00e9 \u1e69 s\u0323\u0307 s\u0307\u0323", "\u1100\u1161\u11a8 \uac01", "\u212b \u2126",
    "\u65e5\u672c\u8a9e\u3002\u30c6\u30b9\u30c8", "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f468\u200d\U0001f469 ok",
    "!!!???", " !a !1", "...\n\n...", "a\n\n\nb", "a \n \n b", "   \n   x", "trailing   ", "x\u0300\u0301\u0302y",
    "_under_score__", "snake_case camelCase HTTPServer", "<|end|>", "a<|end|>b", "<|end|>|>", " <tool> ", "<tool",
    "zebra unreachable zebras", "\x00\x01\x7f", "\ufeffbom", "\u1d400 \u24b6 \u216b", "caf\u00e9 CAF\u00c9",
]


def random_texts(count):
    """Short strings of characters from every class that the patterns tell apart."""
    pool = ("aZ\u00e9\u4e2d\u0923\u01c5 \t\n\r\u00a0\u2003\u0085019\u0663\u2160\u00bd.,!'\"$+<|>_-\u0301\u0327\u200d"
            "\U0001f600stdmrevl")
    rng = random.Random(1)
    return ["".join(rng.choice(pool) for _ in range(rng.randint(2, 14))) for _ in range(count)]


def main():
    training = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[:4000]
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = FAMILIES["gpt-2"][0]
    base.train_from_iterator(training, trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(base.to_str())["model"]
    vocab = model["vocab"]
    for token in UNREACHABLE:
        vocab[token] = len(vocab)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]

    texts = WRITTEN + random_texts(150)
    out = {"tokens": sorted(vocab, key=vocab.get), "special": SPECIAL,
           "merges": [" ".join(m) for m in merges], "texts": texts, "families": {}}
    for name, (pre, normalizer) in FAMILIES.items():
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=name == "llama3"))
        tokenizer.pre_tokenizer = pre
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
        rows = {}
        for key, plain in (("plain", True), ("with_special", False)):
            tokenizer.encode_special_tokens = plain
            rows[key] = [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]
        out["families"][name] = rows
    path = pathlib.Path(__file__).with_name("tokenizer_cases.json")
    parts = [f" {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in out.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


main()
