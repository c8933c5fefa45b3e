#include "lib/Import/TokenizerJsonSteps.h"

#include "llvm/ADT/Twine.h"

using namespace llvm;
using nlohmann::json;

namespace mlir::llm {
namespace {

class Reader {
public:
  Reader(StringRef path, sprig::TokenizerTables &tables)
      : path(path), tables(tables) {}

  /// The tokens put around a text: at most one before it, and one behind it.
  Error readProcessor(const json &step) {
    if (isKind(step, "ByteLevel")) // moves offsets, no tokens
      return Error::success();
    if (isKind(step, "Sequence")) {
      const json *steps = member(step, "processors");
      if (!steps || !steps->is_array())
        return fail("post_processor.processors", "expects a list");
      for (const json &inner : *steps)
        if (isKind(inner, "Sequence"))
          return fail("post_processor", "expects no Sequence in a Sequence");
        else if (Error error = readProcessor(inner))
          return error;
      return Error::success();
    }
    if (!isKind(step, "TemplateProcessing"))
      return fail("post_processor",
                  "expects type ByteLevel, TemplateProcessing or Sequence, but "
                  "got " +
                      (member(step, "type") ? member(step, "type")->dump()
                                            : std::string("none")));
    const json *single = member(step, "single");
    if (!single || !single->is_array())
      return fail("post_processor.single", "expects a list");
    bool behind = false;
    for (const json &part : *single) {
      if (member(part, "Sequence")) {
        behind = true;
        continue;
      }
      const json *special = member(part, "SpecialToken");
      Expected<uint32_t> id = templateToken(step, special);
      if (!id)
        return id.takeError();
      if (*id >= tables.tokenTypes.size())
        return fail("post_processor.special_tokens",
                    "expects tokens of the vocabulary, but got " + Twine(*id));
      bool &adds = behind ? tables.addEos : tables.addBos;
      if (adds)
        return fail("post_processor.single",
                    "expects at most one token before a text and one behind "
                    "it, but got " +
                        single->dump());
      adds = true;
      if (!behind)
        tables.bos = int32_t(*id);
    }
    return Error::success();
  }

  Expected<uint32_t> templateToken(const json &step, const json *special) {
    const json *name = special ? member(*special, "id") : nullptr;
    const json *known = member(step, "special_tokens");
    if (name && name->is_string() && known)
      if (const json *entry =
              member(*known, name->get_ref<const std::string &>()))
        if (const json *ids = member(*entry, "ids");
            ids && ids->is_array() && ids->size() == 1 &&
            (*ids)[0].is_number_unsigned())
          return (*ids)[0].get<uint32_t>();
    return fail("post_processor.special_tokens",
                "expects one id for each token of the template");
  }

  /// Whether decoding drops a space that encoding put in front. What else
  /// decoders do is in the tokens' bytes.
  Error readDecoder(const json &step) {
    if (isKind(step, "Sequence")) {
      const json *steps = member(step, "decoders");
      if (!steps || !steps->is_array())
        return fail("decoder.decoders", "expects a list");
      for (const json &inner : *steps)
        if (isKind(inner, "Sequence"))
          return fail("decoder", "expects no Sequence in a Sequence");
        else if (Error error = readDecoder(inner))
          return error;
      return Error::success();
    }
    if (isKind(step, "Metaspace")) {
      const json *scheme = member(step, "prepend_scheme");
      const json *adds = member(step, "add_prefix_space");
      tables.addSpacePrefix =
          scheme ? *scheme != "never" : !adds || *adds == true;
      return Error::success();
    }
    if (isKind(step, "Strip")) {
      const json *content = member(step, "content"),
                 *start = member(step, "start"), *stop = member(step, "stop");
      if (!content || *content != " " || !start || *start > 1 || !stop ||
          *stop != 0)
        return fail("decoder", "expects to strip one space from the start, but "
                               "got " +
                                   step.dump());
      tables.addSpacePrefix = *start == 1;
      return Error::success();
    }
    for (const char *type : {"ByteLevel", "ByteFallback", "Fuse", "Replace"})
      if (isKind(step, type))
        return Error::success();
    return fail("decoder",
                "expects type ByteLevel, ByteFallback, Fuse, "
                "Metaspace, Replace, Strip or Sequence, but got " +
                    (member(step, "type") ? member(step, "type")->dump()
                                          : std::string("none")));
  }

private:
  Error fail(const Twine &where, const Twine &message) const {
    return createStringError("'" + path + "' " + where + " " + message);
  }

  StringRef path;
  sprig::TokenizerTables &tables;
};

} // namespace

Error readStepsAround(const json &root, StringRef path,
                      sprig::TokenizerTables &tables) {
  Reader reader(path, tables);
  if (const json *step = member(root, "post_processor"))
    if (Error error = reader.readProcessor(*step))
      return error;
  if (const json *step = member(root, "decoder"))
    if (Error error = reader.readDecoder(*step))
      return error;
  return Error::success();
}

} // namespace mlir::llm
