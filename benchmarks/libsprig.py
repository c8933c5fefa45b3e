"""libsprig from Python: one model and one session for many prompts.

As much of runtime/sprig.h, whose comments are the manual, as the scripts here and in test/model need.
"""
import ctypes
import time

C = ctypes


class Error(Exception):
    """What the library says of a call that failed."""


def structure(*fields):
    return type("Structure", (C.Structure,), {"_fields_": [("struct_bytes", C.c_size_t), *fields]})


ModelOptions = structure(
    ("device", C.c_char_p), ("target", C.c_char_p), ("cache_folder", C.c_char_p), ("weights", C.c_int),
    ("robust", C.c_int), ("validation", C.c_int), ("message", C.c_void_p), ("message_user", C.c_void_p),
    ("plan", C.c_void_p), ("plan_user", C.c_void_p), ("memory_limit", C.c_uint64))
Sampling = structure(
    ("seed", C.c_uint64), ("temperature", C.c_float), ("top_k", C.c_uint32), ("top_p", C.c_float),
    ("min_p", C.c_float), ("repeat_penalty", C.c_float), ("repeat_last_n", C.c_uint32))
Speculation = structure(
    ("drafts", C.c_char_p), ("nodes", C.c_uint32), ("chain", C.c_int), ("draft_model", C.c_void_p),
    ("tree_rule", C.c_char_p), ("draft_sampling", C.c_int))
Counts = structure(*[(name, C.c_uint64) for name in ("steps", "trees", "drafted", "accepted", "tokens")])
GenerateOptions = structure(
    ("max_tokens", C.c_uint64), ("ignore_end", C.c_int), ("stops", C.c_void_p), ("stop_count", C.c_size_t))
Generation = structure(
    ("finish", C.c_int), ("tokens", C.c_uint64), ("prompt_tokens", C.c_uint64), ("computed_tokens", C.c_uint64),
    ("prefill_s", C.c_double), ("decode_s", C.c_double))
OnToken = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_uint32, C.c_char_p, C.c_size_t)
ADD_BEGIN = 1


class Session:
    """A model and its only session. `library`: the path of libsprig.so."""

    def __init__(self, library, package):
        self.lib = C.CDLL(str(library))
        self.lib.sprig_last_error.restype = C.c_char_p
        options = self.made(ModelOptions, "sprig_model_options_init")
        self.model, self.session, self.draft = C.c_void_p(), C.c_void_p(), None
        self.call("sprig_model_open", str(package).encode(), C.byref(options), C.byref(self.model))
        self.call("sprig_session_create", self.model, None, C.byref(self.session))

    def close(self):
        self.lib.sprig_session_destroy(self.session)
        for model in filter(None, (self.model, self.draft)):
            self.lib.sprig_model_close(model)

    def made(self, kind, init):
        value = kind()
        getattr(self.lib, init)(C.byref(value))
        return value

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments):
            raise Error(self.lib.sprig_last_error().decode())

    def tokenize(self, text):
        data, count = text.encode(), C.c_size_t()
        read = lambda out, room: self.call("sprig_tokenize", self.model, data, C.c_size_t(len(data)), ADD_BEGIN, out,
                                           C.c_size_t(room), C.byref(count))
        read(None, 0)
        tokens = (C.c_uint32 * count.value)()
        read(tokens, count.value)
        return list(tokens)

    def sample(self, **given):
        sampling = self.made(Sampling, "sprig_sampling_init")
        for name, value in given.items():
            setattr(sampling, name, value)
        self.call("sprig_session_set_sampling", self.session, C.byref(sampling))

    def speculate(self, drafts="off", draft_model=None, **given):
        """`draft_model`: a path; it stays open."""
        wanted = self.made(Speculation, "sprig_speculation_init")
        wanted.drafts = drafts.encode()
        if draft_model:
            if not self.draft:
                self.draft = C.c_void_p()
                options = self.made(ModelOptions, "sprig_model_options_init")
                self.call("sprig_model_open", str(draft_model).encode(), C.byref(options), C.byref(self.draft))
            wanted.draft_model = self.draft
        for name, value in given.items():
            setattr(wanted, name, value.encode() if isinstance(value, str) else value)
        self.call("sprig_session_set_speculation", self.session, C.byref(wanted))

    def forget(self):
        self.call("sprig_session_truncate", self.session, C.c_size_t(0))

    def generate(self, prompt, count):
        """Tokens, counts of the speculation, and what the tokens after the first took, by the clock and of the
        processor (of this whole process, the driver's threads included)."""
        tokens, began = [], []

        def keep(_, token, __, ___):
            if token != 0xffffffff:
                tokens.append(token)
            if len(tokens) == 1:
                began.append(time.process_time())
            return 0

        options = self.made(GenerateOptions, "sprig_generate_options_init")
        options.max_tokens, options.ignore_end = count, 1
        given = (C.c_uint32 * len(prompt))(*prompt)
        result, counts = Generation(), Counts()
        for value in (result, counts):
            value.struct_bytes = C.sizeof(value)
        self.call("sprig_generate", self.session, given, C.c_size_t(len(prompt)), C.byref(options), OnToken(keep), None,
                  C.byref(result))
        spent = time.process_time() - began[0]
        self.call("sprig_session_get_speculation", self.session, C.byref(counts))
        return {"tokens": tokens, "decode_s": result.decode_s, "decode_processor_s": spent,
                **{name: getattr(counts, name) for name in ("steps", "trees", "drafted", "accepted")}}
