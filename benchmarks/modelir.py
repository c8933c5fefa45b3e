"""What the IR of a model says about its key-value caches."""
import re


def cache_bytes(ir, tokens):
    """Of keys and values of so many tokens, from the types of the caches: f16, 8 bits with an f32 scale a token and head,
    or 4 with a scale and a minimum in f16 for a group."""
    aliases = dict(re.findall(r"^(!\w+) = (!llm\.(?:kv|q)<.*>)$", ir, re.M))
    total = 0
    for count, kind in re.findall(r"llm\.kv_cache @\w+ : (?:(\d+) x )?(!llm\.kv<.*>|!\w+)", ir):
        kind = aliases.get(kind, kind)
        heads, key, *value = map(int, re.search(r"kv<([\dx]+)", kind).group(1).split("x"))
        width = key + (value[0] if value else key)
        for alias, meaning in aliases.items():
            kind = re.sub(re.escape(alias) + r"\b", meaning, kind)
        bits = 16 * width
        group = re.search(r"u4, (\d+):", kind)
        if group:
            bits = 4 * width + width // int(group[1]) * 32
        elif "i8, *" in kind:
            bits = 8 * width + 2 * 32
        total += int(count or 1) * heads * bits * tokens // 8
    return total
