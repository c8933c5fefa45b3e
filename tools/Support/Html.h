//===- Html.h - one-page reports
//---------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace sprig::tools {

/// A self-contained page of headings, tables and bars.
class HtmlReport {
public:
  explicit HtmlReport(const std::string &title);

  void heading(const std::string &text);
  void paragraph(const std::string &text);
  /// Rows of cells; the first row is the head.
  void table(const std::vector<std::vector<std::string>> &rows);
  struct Bar {
    std::string label;
    double value;
    std::string shown; ///< the value in words
  };
  /// Bars scaled to the largest.
  void bars(const std::vector<Bar> &list);

  /// Written aside and renamed; false where that failed.
  bool write(const std::string &path) const;

private:
  std::string body, name;
};

/// Writes a whole file aside and renames it; false where that failed.
bool writeWhole(const std::string &path, const std::string &content);

} // namespace sprig::tools
