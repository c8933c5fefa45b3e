/* Continues a text with a compiled model:
 *
 *   generate model.sprig "Once upon a time" [TOKENS]
 */
#include "runtime/sprig.h"

#include <stdio.h>
#include <stdlib.h>

static int print(void *user, uint32_t token, const char *text, size_t bytes) {
  (void)user;
  (void)token;
  fwrite(text, 1, bytes, stdout);
  fflush(stdout);
  return 0; /* go on */
}

static int fail(void) {
  fprintf(stderr, "generate: %s\n", sprig_last_error());
  return 1;
}

int main(int argc, char **argv) {
  char *end = NULL;
  unsigned long long tokens = argc > 3 ? strtoull(argv[3], &end, 10) : 0;
  if (argc < 3 || argc > 4 ||
      (argc > 3 && (argv[3][0] < '0' || argv[3][0] > '9' || *end))) {
    fprintf(stderr, "usage: generate MODEL.sprig PROMPT [TOKENS]\n");
    return 2;
  }
  sprig_model *model;
  if (sprig_model_open(argv[1], NULL, &model) != SPRIG_OK)
    return fail();
  sprig_session *session;
  if (sprig_session_create(model, NULL, &session) != SPRIG_OK) {
    sprig_model_close(model);
    return fail();
  }
  sprig_generate_options options;
  sprig_generate_options_init(&options);
  if (argc > 3)
    options.max_tokens = tokens;
  sprig_generation result = {.struct_bytes = sizeof result};
  sprig_code code =
      sprig_generate_text(session, argv[2], &options, print, NULL, &result);
  if (code == SPRIG_OK) {
    double rate =
        result.decode_s > 0 ? (double)(result.tokens - 1) / result.decode_s : 0;
    printf("\n");
    fprintf(stderr, "%llu tokens, %.1f a second\n",
            (unsigned long long)result.tokens, rate);
  }
  int status = code == SPRIG_OK ? 0 : fail();
  sprig_session_destroy(session);
  sprig_model_close(model);
  return status;
}
