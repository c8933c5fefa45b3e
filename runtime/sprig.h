/* sprig.h: runs compiled language models on Vulkan devices.
 *
 * This header is the manual. The smallest use (examples/generate.c is a whole
 * program):
 *
 *   sprig_model *model;
 *   sprig_session *session;
 *   if (sprig_model_open("model.sprig", NULL, &model) != SPRIG_OK ||
 *       sprig_session_create(model, NULL, &session) != SPRIG_OK) {
 *     fprintf(stderr, "%s\n", sprig_last_error());
 *     return 1;
 *   }
 *   sprig_generate_text(session, "Once upon a time", NULL, print, NULL, NULL);
 *   sprig_session_destroy(session);
 *   sprig_model_close(model);
 *
 * Errors. Every function that can fail returns a sprig_code; SPRIG_OK is 0.
 * sprig_last_error() is the message of the last failure on the calling thread.
 * No function prints, throws, exits or aborts. A function that failed has
 * changed nothing, unless it says otherwise; after SPRIG_DEVICE_ERROR a session
 * can only be destroyed.
 *
 * Threads. A sprig_model may be used from any number of threads; a
 * sprig_session from one at a time. Sessions of one model are independent.
 * Callbacks are called on the thread that called the function they were given
 * to, except sprig_model_options.message.
 *
 * Ownership. What a function creates is destroyed by its counterpart: sessions
 * before their model. Strings and arrays given to a function are copied or read
 * before it returns. Strings that a function returns belong to the object they
 * came from.
 *
 * Texts are UTF-8 with a length in bytes and need no final zero, unless they
 * are called a C string. Token ids are 32-bit numbers below the model's
 * vocabulary. Sizes are in bytes, times in seconds.
 *
 * Vulkan is loaded when the first model is opened or devices are listed: a
 * program that links this library starts where there is no Vulkan at all. The
 * environment variable SPRIG_VULKAN_LIBRARY names another loader than
 * libvulkan.so.1.
 *
 * Growth. Structures of options and results begin with struct_bytes, set by the
 * matching sprig_..._init function or by the caller to sizeof the structure, so
 * that later versions can append fields.
 */
#ifndef SPRIG_H
#define SPRIG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPRIG_API __attribute__((visibility("default")))
#else
#define SPRIG_API
#endif

typedef enum sprig_code {
  SPRIG_OK = 0,
  SPRIG_INVALID_ARGUMENT = 1, /* the caller asked for something senseless */
  SPRIG_NOT_FOUND = 2,        /* a file, driver, device or name is not there */
  SPRIG_UNSUPPORTED = 3,      /* well formed, not for this build or device */
  SPRIG_CORRUPT = 4,          /* a file that is damaged or contradicts itself */
  SPRIG_OUT_OF_MEMORY = 5,    /* of the host or of the device */
  SPRIG_DEVICE_ERROR = 6,     /* the device refused or was lost */
  SPRIG_CONTEXT = 7,          /* more tokens than the context holds */
  SPRIG_IO_ERROR = 8          /* reading or writing a file failed */
} sprig_code;

/* "0.1.0": a C string that lives for ever. */
SPRIG_API const char *sprig_version(void);

/* What went wrong in the last call on this thread that failed: a C string in
 * words for a person, with the file, call or object named. Valid until the next
 * failure on this thread; "" before the first. */
SPRIG_API const char *sprig_last_error(void);

/*===-- Devices ----------------------------------------------------------===*/

typedef struct sprig_device {
  char name[256];   /* "NVIDIA GeForce RTX 4070" */
  char driver[512]; /* name and version of the driver */
  char kind[32];    /* "discrete GPU", "integrated GPU", "virtual GPU", "CPU" */
  uint32_t vulkan_major, vulkan_minor;
  uint64_t memory_bytes; /* of the largest device-local heap */
  int unified;           /* not 0: shares its memory with the host */
} sprig_device;

/* Writes up to `capacity` devices, in the order of their indices, and sets
 * *count to the number there are (which may be 0). Fails with SPRIG_NOT_FOUND
 * where there is no Vulkan loader or no driver. `devices` may be NULL if
 * `capacity` is 0. */
SPRIG_API sprig_code sprig_list_devices(sprig_device *devices, size_t capacity,
                                        size_t *count);

/*===-- Models -----------------------------------------------------------===*/

typedef struct sprig_model sprig_model;

typedef enum sprig_weights {
  SPRIG_WEIGHTS_AUTO = 0,     /* in place where possible, otherwise copied */
  SPRIG_WEIGHTS_IN_PLACE = 1, /* the pages of the file, or an error */
  SPRIG_WEIGHTS_MAPPED = 2,   /* copied by the host into device memory */
  SPRIG_WEIGHTS_STAGED = 3    /* copied by the device, piece by piece */
} sprig_weights;

/* What a model and one session of it will take, in bytes: exact, and known
 * before any of it is allocated. */
typedef struct sprig_memory_plan {
  uint64_t weights, kv, activations, logits, control;
  uint64_t available;   /* what the device says is free */
  int weights_in_place; /* not 0: the weights stay in the pages of the file */
  uint32_t context;     /* tokens that `kv` holds */
} sprig_memory_plan;

typedef struct sprig_model_options {
  size_t struct_bytes;
  /* Index of a device, or a part of its name in any case; NULL: the most
   * capable (discrete, integrated, virtual, CPU). C string. */
  const char *device;
  /* Name of one of the package's targets; NULL: the best that fits the device.
   * C string. */
  const char *target;
  /* Folder of the pipeline cache, which makes the next start fast. NULL:
   * $XDG_CACHE_HOME/sprig or ~/.cache/sprig; "": none. C string. */
  const char *cache_folder;
  sprig_weights weights;
  /* 0: accesses outside buffers are undefined (default: 1, they are harmless
   * where the device supports it). */
  int robust;
  /* Not 0: runs under the Vulkan validation layers, core and synchronisation; a
   * message of theirs makes the next call fail. Also set by the environment
   * variable SPRIG_VALIDATION=1. Much slower. */
  int validation;
  /* Called with every message of the validation layers (a C string), from any
   * thread; may be NULL. */
  void (*message)(void *user, const char *text);
  void *message_user;
  /* Called once, before memory is allocated (also where it will not suffice, and
   * opening fails); may be NULL. */
  void (*plan)(void *user, const sprig_memory_plan *plan);
  void *plan_user;
  /* Bytes that the model and its sessions may take in all, weights in the pages
   * of the file not counted; 0 (default): what the device has free. Beyond it
   * sprig_model_open or sprig_session_create fails with SPRIG_OUT_OF_MEMORY,
   * whose message says what is missing and what would fit. */
  uint64_t memory_limit;
} sprig_model_options;

SPRIG_API void sprig_model_options_init(sprig_model_options *options);

/* Opens a package on a device. Checks the header and all metadata of the file,
 * chooses device and target, checks that weights and one session fit into the
 * device's memory, and brings the weights there. Hashing the weights goes on
 * behind and is done before the first result of a session is given out: a
 * damaged file shows then, as SPRIG_CORRUPT. `options` may be NULL. The file
 * may not change while the model is open. */
SPRIG_API sprig_code sprig_model_open(const char *path,
                                      const sprig_model_options *options,
                                      sprig_model **model);

/* Closes a model without sessions; writes the pipeline cache if it grew. NULL
 * is allowed. */
SPRIG_API void sprig_model_close(sprig_model *model);

/* Waits for the hashes of the weights: SPRIG_OK or SPRIG_CORRUPT. */
SPRIG_API sprig_code sprig_model_verify(sprig_model *model);

typedef struct sprig_model_info {
  size_t struct_bytes; /* set by the caller */
  /* C strings that live as long as the model. */
  const char *name, *architecture, *license, *target, *device, *driver;
  uint32_t vocabulary;
  uint32_t context; /* tokens that a session holds */
  int has_tokenizer, has_chat_template;
  /* Memory, exact: weights once a model, the rest once a session. */
  uint64_t package_bytes, weight_bytes, kv_bytes, session_bytes;
  int weights_in_place; /* not 0: the weights are the file's own pages */
} sprig_model_info;

SPRIG_API sprig_code sprig_model_get_info(const sprig_model *model,
                                          sprig_model_info *info);

/*===-- Text -------------------------------------------------------------===*/

enum {
  /* Control tokens spelled in the text become those tokens. Only for text that
   * no stranger wrote. */
  SPRIG_PARSE_SPECIAL = 1,
  /* Puts the begin token in front where the model's metadata asks for one. */
  SPRIG_ADD_BEGIN = 2,
  /* Detokenising writes control tokens as their text. */
  SPRIG_SHOW_SPECIAL = 4,
  /* A chat prompt ends after the last message instead of opening an answer. */
  SPRIG_NO_GENERATION_PROMPT = 8
};

/* Text to tokens. Writes up to `capacity` of them and sets *count to the number
 * there are; call again with more room where that is larger. Invalid UTF-8
 * reads as U+FFFD. */
SPRIG_API sprig_code sprig_tokenize(sprig_model *model, const char *text,
                                    size_t bytes, unsigned flags,
                                    uint32_t *tokens, size_t capacity,
                                    size_t *count);

/* Tokens to text, the same way. */
SPRIG_API sprig_code sprig_detokenize(sprig_model *model,
                                      const uint32_t *tokens, size_t count,
                                      unsigned flags, char *text,
                                      size_t capacity, size_t *bytes);

/* A conversation to the tokens of the model's own chat template.
 * `messages_json`: a C string, a list of {"role": ..., "content": ...};
 * `tools_json`: a list of tools, or NULL. No text of a message becomes a
 * control token. SPRIG_UNSUPPORTED where the package has no template. */
SPRIG_API sprig_code sprig_chat_tokens(sprig_model *model,
                                       const char *messages_json,
                                       const char *tools_json, unsigned flags,
                                       uint32_t *tokens, size_t capacity,
                                       size_t *count);

/* Adapters that sessions can choose from (llm-compile --switch-adapter). */
SPRIG_API size_t sprig_model_adapter_count(const sprig_model *model);
/* The name of one, valid as long as the model; NULL past the last one. */
SPRIG_API const char *sprig_model_adapter_name(const sprig_model *model,
                                               size_t index);

/* Not 0 where `token` ends an answer. */
SPRIG_API int sprig_is_end_token(sprig_model *model, uint32_t token);

/*===-- Sessions: one sequence of tokens each ----------------------------===*/

typedef struct sprig_session sprig_session;

typedef struct sprig_session_options {
  size_t struct_bytes;
  /* Steps that the device may be ahead of the caller, 1 to 4; default 3. */
  uint32_t ahead;
  /* Not 0: all memory starts as NaN, to find kernels that read what they did
   * not write. */
  int poison;
} sprig_session_options;

SPRIG_API void sprig_session_options_init(sprig_session_options *options);

/* Allocates the memory of one sequence (sprig_model_info.session_bytes).
 * `options` may be NULL. */
SPRIG_API sprig_code sprig_session_create(sprig_model *model,
                                          const sprig_session_options *options,
                                          sprig_session **session);
SPRIG_API void sprig_session_destroy(sprig_session *session); /* NULL allowed */

/* Tokens in the sequence: fed ones and sampled ones. */
SPRIG_API size_t sprig_session_length(const sprig_session *session);
/* How many leading tokens of `tokens` are the session's own: what need not be
 * fed again. */
SPRIG_API size_t sprig_session_match(const sprig_session *session,
                                     const uint32_t *tokens, size_t count);
/* The tokens themselves: writes up to `capacity` and sets *count to the number
 * there are. */
SPRIG_API sprig_code sprig_session_tokens(const sprig_session *session,
                                          uint32_t *tokens, size_t capacity,
                                          size_t *count);
/* Cuts the sequence back to `length` tokens. Costs nothing. */
SPRIG_API sprig_code sprig_session_truncate(sprig_session *session,
                                            size_t length);
/* Writes the sequence with its keys and values to a file, so that nothing of it
 * has to be computed again. The file is whole or absent. `note`: bytes of the
 * application's own that come back with it, at most 16 MiB. The sampling
 * settings are not saved. What was sampled ahead is forgotten. */
SPRIG_API sprig_code sprig_session_save(sprig_session *session,
                                        const char *path, const void *note,
                                        size_t note_bytes);
/* Replaces what the session holds by a saved sequence. SPRIG_INVALID_ARGUMENT
 * for a file of another package or target, SPRIG_CORRUPT for a damaged one:
 * then the session is as it was. */
SPRIG_API sprig_code sprig_session_load(sprig_session *session,
                                        const char *path);
/* The note of the file that was loaded last; valid until the next load. */
SPRIG_API const void *sprig_session_note(const sprig_session *session,
                                         size_t *bytes);

/* Uses one of the package's adapters from now on; NULL or "": none, as at
 * first. Where that is another one the sequence is forgotten, since another
 * model made its keys and values. SPRIG_INVALID_ARGUMENT for a name that the
 * package does not have. */
SPRIG_API sprig_code sprig_session_set_adapter(sprig_session *session,
                                               const char *name);

/* Bytes of device memory: the model's weights and this session's. */
SPRIG_API uint64_t sprig_session_device_bytes(const sprig_session *session);

/* How tokens are chosen; docs/sampling.md says exactly how. The same seed gives
 * the same tokens at the same positions, on one device and driver. */
typedef struct sprig_sampling {
  size_t struct_bytes;
  uint64_t seed;
  float temperature;      /* 0 (default): the likeliest token */
  uint32_t top_k;         /* 0: all */
  float top_p;            /* 1: all */
  float min_p;            /* 0: all */
  float repeat_penalty;   /* 1: none */
  uint32_t repeat_last_n; /* tokens back that the penalty looks at; 64 */
} sprig_sampling;

SPRIG_API void sprig_sampling_init(sprig_sampling *sampling);
/* From the next start or generation on. SPRIG_INVALID_ARGUMENT names what is
 * out of range. */
SPRIG_API sprig_code sprig_session_set_sampling(sprig_session *session,
                                                const sprig_sampling *sampling);

/* Feed tokens to the end of the sequence. All of these fail with SPRIG_CONTEXT,
 * and change nothing, where the sequence would outgrow the context. */

/* Nothing is asked for. */
SPRIG_API sprig_code sprig_session_append(sprig_session *session,
                                          const uint32_t *tokens, size_t count);
/* `logits`: `count` rows of `vocabulary` floats, one after each token.
 * SPRIG_UNSUPPORTED where the package was compiled without them. */
SPRIG_API sprig_code sprig_session_evaluate(sprig_session *session,
                                            const uint32_t *tokens,
                                            size_t count, float *logits);
/* `logits`: one row, after the last token. */
SPRIG_API sprig_code sprig_session_evaluate_last(sprig_session *session,
                                                 const uint32_t *tokens,
                                                 size_t count, float *logits);

/* Feeds tokens and starts to sample up to `budget` tokens (at least 1). With
 * `count` 0 it goes on after the last sampled token. The device starts at once
 * and stays a few steps ahead. */
SPRIG_API sprig_code sprig_session_start(sprig_session *session,
                                         const uint32_t *tokens, size_t count,
                                         uint64_t budget);
/* Waits for the next sampled token. SPRIG_CONTEXT when the context is full,
 * SPRIG_INVALID_ARGUMENT when the budget is used up. */
SPRIG_API sprig_code sprig_session_next(sprig_session *session,
                                        uint32_t *token);
/* Forgets what was sampled beyond the last token taken. */
SPRIG_API sprig_code sprig_session_stop(sprig_session *session);

/*===-- Endless generation: past the end of the context ------------------===
 *
 * When the context is full the first tokens and the last ones stay, and those
 * between them are forgotten (docs/endless.md). */

typedef struct sprig_endless {
  size_t struct_bytes;
  uint32_t sinks;  /* first tokens that stay; 4 */
  uint32_t window; /* last tokens that stay; 0 (default): half of the rest */
} sprig_endless;

SPRIG_API void sprig_endless_init(sprig_endless *endless);
/* From here on no call fails with SPRIG_CONTEXT because the sequence outgrows
 * the context, trees that are wider than what is left of it excepted. The tokens
 * do not depend on how they were fed, nor on speculation. NULL: the context is
 * the end again. SPRIG_INVALID_ARGUMENT where sinks and window leave no room,
 * SPRIG_UNSUPPORTED for a package that was compiled without llm-compile
 * --endless. */
SPRIG_API sprig_code sprig_session_set_endless(sprig_session *session,
                                               const sprig_endless *endless);
/* Tokens of the sequence that were forgotten so far; its length counts them
 * still. */
SPRIG_API size_t sprig_session_evicted(const sprig_session *session);

/*===-- Speculation: guesses verified in one step --------------------------===
 *
 * Drafts guess the next tokens as a tree, and one step of the device says which
 * of them plain decoding would have sampled: the tokens are the same, there are
 * only fewer steps. docs/speculation.md says when it pays. */

typedef struct sprig_speculation {
  size_t struct_bytes;
  /* C string. NULL or "off": plain decoding. "ngram": what followed the same
   * words before, in the prompt or the answer, whenever they occurred before.
   * "self": what the model says without some of its layers, or with fewer bits;
   * "heads": what heads on its last hidden state say; both are part of packages
   * that were compiled with them (llm-compile --draft). "model": what
   * `draft_model` says. "ngram,self": both in one tree. "auto": any draft there
   * is, and only while it is faster by what was measured so far. */
  const char *drafts;
  uint32_t nodes; /* of a tree at most; 0: as many as the package takes */
  int chain;      /* not 0: one path, without branches */
  /* A smaller model with the same vocabulary; may be NULL. Stays open as long
   * as the session speculates with it. */
  sprig_model *draft_model;
  /* What becomes a tree of what "self" and "heads" say. NULL or "comb": the
   * guesses they draw, and beside each what else they name; "clover", "eagle":
   * trees that grow level by level, by the rules of Clover-2 and EAGLE-2. */
  const char *tree_rule;
  /* Not 0: "self" or "heads", the only draft then, draws its guesses where the
   * temperature is above 0. What is given out is distributed as without
   * guesses, but other tokens come for a seed. */
  int draft_sampling;
} sprig_speculation;

SPRIG_API void sprig_speculation_init(sprig_speculation *speculation);
/* How sprig_session_start, sprig_session_next and sprig_generate go on from
 * here; what was sampled ahead is forgotten. NULL: plainly.
 * SPRIG_INVALID_ARGUMENT names a draft that does not exist or that the package
 * does not have, too many nodes, a rule that does not exist, or a draft model
 * with another vocabulary;
 * SPRIG_UNSUPPORTED a package without programs for trees (llm-compile
 * --tree). */
SPRIG_API sprig_code sprig_session_set_speculation(
    sprig_session *session, const sprig_speculation *speculation);

typedef struct sprig_speculation_counts {
  size_t struct_bytes; /* set by the caller */
  uint64_t steps;    /* of the device that sampled */
  uint64_t trees;    /* of those, over trees */
  uint64_t drafted;  /* guesses that were verified */
  uint64_t accepted; /* of those, right */
  uint64_t tokens;   /* given out */
} sprig_speculation_counts;

/* Since the last start or generation; all 0 without speculation. */
SPRIG_API sprig_code sprig_session_get_speculation(
    const sprig_session *session, sprig_speculation_counts *counts);

/* Nodes of the largest tree that the package has a program for; 0: none. */
SPRIG_API uint32_t sprig_session_largest_tree(const sprig_session *session);

/* One step over a tree of your own. Node 0 is the last token of the sequence,
 * as sampled and not fed yet, and parents[0] is -1; every other node comes
 * after its parent. Appends to the sequence, and writes to `accepted` (room for
 * `count`), what plain sampling would have brought: the tokens of the nodes
 * that were right, then one more. `logits`: NULL, or `count` rows of
 * `vocabulary` floats, of all nodes. SPRIG_INVALID_ARGUMENT names the node that
 * is wrong; SPRIG_CONTEXT where the tree does not fit. */
SPRIG_API sprig_code sprig_session_verify(sprig_session *session,
                                          const uint32_t *tokens,
                                          const int32_t *parents, size_t count,
                                          uint32_t *accepted,
                                          size_t *accepted_count,
                                          float *logits);

/*===-- Generation: a prompt to an answer --------------------------------===*/

typedef enum sprig_finish {
  SPRIG_FINISH_LENGTH = 0, /* max_tokens, or the callback ended it */
  SPRIG_FINISH_STOP = 1,   /* an end token or a stop string */
  SPRIG_FINISH_CONTEXT = 2 /* the context is full */
} sprig_finish;

typedef struct sprig_generate_options {
  size_t struct_bytes;
  uint64_t max_tokens; /* default 128 */
  int ignore_end;      /* not 0: end tokens are tokens like others */
  /* `stop_count` C strings, each of which ends the answer before itself. */
  const char *const *stops;
  size_t stop_count;
} sprig_generate_options;

SPRIG_API void sprig_generate_options_init(sprig_generate_options *options);

typedef struct sprig_generation {
  size_t struct_bytes; /* set by the caller */
  sprig_finish finish;
  uint64_t tokens;          /* generated, an end token included */
  uint64_t prompt_tokens;   /* of the prompt */
  uint64_t computed_tokens; /* of those, not taken from the session's past */
  double prefill_s;         /* from the call to the first token */
  double decode_s;          /* from the first token to the last */
} sprig_generation;

/* Called with every token, and the text that became certain with it: whole
 * characters, never a part of a stop string; it may be empty. The last call may
 * bring text alone: then `token` is UINT32_MAX. Returns 0 to go on; anything
 * else ends the answer. */
typedef int (*sprig_on_token)(void *user, uint32_t token, const char *text,
                              size_t bytes);

/* Makes the session hold exactly `prompt`, computing only what it does not hold
 * already, and generates. `options`, `on_token` and `generation` may be NULL.
 * A package without a tokenizer gives tokens and no text. */
SPRIG_API sprig_code sprig_generate(sprig_session *session,
                                    const uint32_t *prompt, size_t count,
                                    const sprig_generate_options *options,
                                    sprig_on_token on_token, void *user,
                                    sprig_generation *generation);

/* The same from a text (a C string), with a begin token where the model wants
 * one; control tokens in it stay text. */
SPRIG_API sprig_code sprig_generate_text(sprig_session *session,
                                         const char *prompt,
                                         const sprig_generate_options *options,
                                         sprig_on_token on_token, void *user,
                                         sprig_generation *generation);

/* Runs the package's golden vectors (what the compiler's reference evaluator
 * says about a few prompts): SPRIG_OK where the device agrees at every position
 * whose margin is above `margin` logits (0.1 is usual), SPRIG_DEVICE_ERROR with
 * the place where it does not, SPRIG_UNSUPPORTED where there are none. The
 * session is empty afterwards. */
SPRIG_API sprig_code sprig_session_self_test(sprig_session *session,
                                             float margin);

#ifdef __cplusplus
}
#endif

#endif /* SPRIG_H */
