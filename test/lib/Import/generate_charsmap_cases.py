#!/usr/bin/env python3
"""Writes charsmap_cases.json: SentencePiece models with a map of characters, what the `sentencepiece` package (0.2.3 made
the committed file) makes of many strings, and what the `tokenizers` package (0.23.3) does with the map alone.

    pip install sentencepiece tokenizers
    python3 test/lib/Import/generate_charsmap_cases.py [--published FILE]

The map is one of few rules, so that the file is small. With --published FILE the whole map of `nmt_nfkc` is taken, on many
more strings, and written to FILE: CharsMapTest reads it where SPRIG_CHARSMAP_CASES names it.
"""
import base64
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import normalizers

# Keys that begin with others, sequences, texts that are longer, shorter, empty, and a key across two graphemes.
RULES = {"A": "a", "AB": "x", "ABC": "yz", "\u00e9": "e", "e\u0301": "e", "\u00c5": "a", "A\u030a": "a", "\ufb01": "fi",
         "\u3000": " ", "\u00a0": " ", "\t": " ", "\u200b": "", "\u00bd": "1\u20442", "\u2460": "1", "\ufdfa": "one two three",
         "\u0915\u093f": "ki", "\U0001f600": ":)", "!?": "\u203d", "\u00ad": "", "\u1100\u1161": "\uac00"}
TEXTS = ["", " ", "A", "AB", "ABC", "ABCD", "AABAB", "aAbB", "\u00e9t\u00e9 e\u0301te\u0301", "e\u0301\u0301", "A\u030a\u0301",
         "\u00c5ngstr\u00f6m", "\ufb01n", "a\u3000b\u00a0c\td", "  A  B  ", "\u200b", "x\u200by", "\u00bd cup", "\u2460\u2461",
         "\ufdfa!", "\u0915\u093f\u0924\u093e\u092c", "\U0001f600\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
         "what!?!", "soft\u00adly", "\u1100\u1161\u11a8 \uac01", "\r\n\r\n", "a\u0300\u0301\u0302\u0303b", "the cat\u2581sat",
         "\u2581", "\ufffd", "mixed AB \u3000 \u00e9\ufb01 end "]
TRAINING = ["the cat sat on the mat", "a fine cup of tea for two", "one two three and more", "abc xyz aab", "a cafe in the city",
            "he ate the cake and the bread", "it is what it is"] * 20


def random_texts(count, pool, seed):
    rng = random.Random(seed)
    return ["".join(rng.choice(pool) for _ in range(rng.randint(1, 12))) for _ in range(count)]


def train(folder, kind, published, **more):
    rules = folder / "rules.tsv"
    rules.write_text("".join("\t".join(" ".join(f"{ord(c):x}" for c in side) for side in rule) + "\n"
                             for rule in RULES.items()), encoding="utf-8")
    rule = dict(normalization_rule_name="nmt_nfkc") if published else dict(normalization_rule_tsv=str(rules))
    (folder / "text").write_text("\n".join(TRAINING), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / kind), model_type=kind, vocab_size=more.pop("size"),
        hard_vocab_limit=False, character_coverage=1.0, minloglevel=2, **rule, **more)
    return (folder / f"{kind}.model").read_bytes()


def main():
    published = sys.argv[2] if sys.argv[1:2] == ["--published"] else None
    texts = TEXTS + random_texts(60, "ABCabc e\u0301\u030a\u00e9\u00c5\ufb01\u3000\u200b\u00bd\u0915\u093f!?\u1100\u1161\u00ad", 3)
    if published:
        assigned = [chr(code) for code in range(1, 0x1F000) if not 0xD800 <= code < 0xE000]
        texts += assigned[:0x3400] + random_texts(4000, assigned[:0x3400], 4) + random_texts(2000, assigned, 5)
    out = {"texts": texts, "models": []}
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for kind, more in [("unigram", dict(size=60)), ("bpe", dict(size=60, byte_fallback=False)),
                           ("bpe", dict(size=330, byte_fallback=True, remove_extra_whitespaces=False)),
                           ("unigram", dict(size=60, add_dummy_prefix=False))]:
            model = train(folder, kind, published, **more)
            pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
            out["models"].append({"model": base64.b64encode(model).decode(), "ids": [pieces.encode(text) for text in texts]})
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model)
    charsmap = proto.normalizer_spec.precompiled_charsmap
    step = normalizers.Precompiled(charsmap)
    out["charsmap"] = base64.b64encode(charsmap).decode()
    out["normal"] = [step.normalize_str(text) for text in texts]
    path = pathlib.Path(published or pathlib.Path(__file__).with_name("charsmap_cases.json"))
    with path.open("w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"
                                       for key, value in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()
