#include "tools/Support/Html.h"

#include <algorithm>
#include <cstdio>

namespace sprig::tools {
namespace {

constexpr char kStyle[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem;color:#222;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}"
    ".bar{display:flex;align-items:center;margin:.15rem 0}"
    ".bar span{flex:0 0 16rem}.bar i{background:#3a6ea5;height:.9rem;"
    "display:block;margin-right:.6rem}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#1b1b1b}"
    "td,th{border-color:#444}}";

std::string escaped(const std::string &text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    default:
      out += c;
    }
  return out;
}

} // namespace

HtmlReport::HtmlReport(const std::string &title) : name(title) {
  body = "<h1>" + escaped(title) + "</h1>\n";
}

void HtmlReport::heading(const std::string &text) {
  body += "<h2>" + escaped(text) + "</h2>\n";
}

void HtmlReport::paragraph(const std::string &text) {
  body += "<p>" + escaped(text) + "</p>\n";
}

void HtmlReport::table(const std::vector<std::vector<std::string>> &rows) {
  body += "<table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const char *cell = i == 0 ? "th" : "td";
    body += "<tr>";
    for (const std::string &text : rows[i])
      body += std::string("<") + cell + ">" + escaped(text) + "</" + cell + ">";
    body += "</tr>\n";
  }
  body += "</table>\n";
}

void HtmlReport::bars(const std::vector<Bar> &list) {
  double most = 0;
  for (const Bar &bar : list)
    most = std::max(most, bar.value);
  for (const Bar &bar : list) {
    char width[32];
    std::snprintf(width, sizeof(width), "%.1f",
                  most > 0 ? 28 * bar.value / most : 0);
    body += "<div class=\"bar\"><span>" + escaped(bar.label) +
            "</span><i style=\"width:" + width + "rem\"></i>" +
            escaped(bar.shown) + "</div>\n";
  }
}

bool HtmlReport::write(const std::string &path) const {
  return writeWhole(path, "<!doctype html>\n<html lang=\"en\"><head><meta "
                          "charset=\"utf-8\"><title>" +
                              escaped(name) + "</title><style>" + kStyle +
                              "</style></head>\n<body>\n" + body +
                              "</body></html>\n");
}

bool writeWhole(const std::string &path, const std::string &content) {
  std::string aside = path + ".part";
  std::FILE *out = std::fopen(aside.c_str(), "wb");
  if (!out)
    return false;
  bool written =
      std::fwrite(content.data(), 1, content.size(), out) == content.size();
  written = std::fclose(out) == 0 && written;
  if (written && std::rename(aside.c_str(), path.c_str()) == 0)
    return true;
  std::remove(aside.c_str());
  return false;
}

} // namespace sprig::tools
