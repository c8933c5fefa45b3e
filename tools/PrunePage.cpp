#include "tools/PrunePage.h"

#include "tools/Support/Html.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <map>

using sprig::tools::HtmlReport;

namespace mlir::llm {

static std::string percent(double share) {
  return share < 0 ? std::string("–") : ::llvm::formatv("{0:f2} %", 100 * share).str();
}

static std::string place(const PruneRecord &record) {
  return record.layer < 0 ? std::string("all") : std::to_string(record.layer);
}

static void addPass(HtmlReport &page, const std::string &pass, const std::vector<const PruneRecord *> &records) {
  page.heading(pass);
  std::vector<HtmlReport::Bar> asItIs, fitted, scores;
  std::vector<std::vector<std::string>> rows = {{"layer", "what", "removed", "of", "share of the score", "lost as it is",
                                                 "lost after the fit"}};
  for (const PruneRecord *record : records) {
    if (record->lost.before >= 0) {
      asItIs.push_back({place(*record), record->lost.before, percent(record->lost.before)});
      fitted.push_back({place(*record), record->lost.after, percent(record->lost.after)});
    } else if (record->score >= 0) {
      scores.push_back({place(*record), record->score, percent(record->score)});
    }
    rows.push_back({place(*record), record->what, std::to_string(record->removed), std::to_string(record->of),
                    percent(record->score), percent(record->lost.before), percent(record->lost.after)});
  }
  if (!asItIs.empty()) {
    page.paragraph("Share of the output behind it that is lost, by layer, as it is:");
    page.bars(asItIs);
    page.paragraph("The same after the fit:");
    page.bars(fitted);
  }
  if (!scores.empty()) {
    page.paragraph("Score of what went, by layer:");
    page.bars(scores);
  }
  page.table(rows);
}

::llvm::Error writePrunePage(const PruneReport &report, ::llvm::StringRef model, ::llvm::StringRef path) {
  HtmlReport page("What was pruned from " + ::llvm::sys::path::filename(model).str());
  std::vector<std::string> order;
  std::map<std::string, std::vector<const PruneRecord *>> byPass;
  for (const PruneRecord &record : report.records) {
    auto &list = byPass[record.pass];
    if (list.empty())
      order.push_back(record.pass);
    list.push_back(&record);
  }
  if (order.empty())
    page.paragraph("Nothing was removed.");
  if (!report.tried.empty()) {
    page.heading("Shapes that were tried");
    page.paragraph("How far the guesses of a copy cut like that are from the model's own, in nats a token:");
    std::vector<HtmlReport::Bar> bars;
    for (const TriedShape &shape : report.tried)
      bars.push_back({shape.what, shape.divergence, ::llvm::formatv("{0:f4}", shape.divergence).str()});
    page.bars(bars);
  }
  for (const std::string &pass : order)
    addPass(page, pass, byPass[pass]);
  if (!page.write(path.str()))
    return ::llvm::createStringError("cannot write '" + path + "'");
  return ::llvm::Error::success();
}

} // namespace mlir::llm
