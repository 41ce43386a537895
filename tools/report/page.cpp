#include "tools/report/page.h"

#include <algorithm>
#include <cmath>

namespace duplex::tools::reports {
namespace {

// A shadow at its edge says that a table goes on there. On a narrow screen charts shrink, and their
// letters are larger in proportion.
// Colours are told apart by people who do not see red or green, and in print by their dashes
// (Okabe and Ito 2008).
const char* const style = R"(
:root{--paper:#fff;--ink:#1b1f24;--faint:#667080;--line:#d5dae1;--shade:#f3f5f8;--good:#17683a;--bad:#a8321a;
--shadow:#0004;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b0559a;--c4:#7a6a00;--c5:#4a4f57;
--c6:#8c2d04;--c7:#00838f;--c8:#6a3d9a;--c9:#c2185b;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e4e8ee;--faint:#98a2b0;--line:#363d47;
--shade:#1d2228;--shadow:#fff5;--good:#5fd08f;--bad:#ff8f73;--c0:#56b4e9;--c1:#ff9a4d;--c2:#3fd0a2;--c3:#e29ad0;--c4:#e0cf4f;--c5:#b6bec9;
--c6:#d99a6c;--c7:#5fc9d6;--c8:#b79cf0;--c9:#ff7fae}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0 1rem}h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-top:1px solid var(--line);padding-top:1.2rem}
h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
p{margin:.5rem 0;max-width:46rem}a{color:var(--c0)}
.scroll{overflow-x:auto;margin:.8rem 0;background:linear-gradient(90deg,var(--paper) 40%,transparent) left/2rem 100% no-repeat local,
linear-gradient(270deg,var(--paper) 40%,transparent) right/2rem 100% no-repeat local,
linear-gradient(90deg,var(--shadow),transparent) left/.8rem 100% no-repeat scroll,
linear-gradient(270deg,var(--shadow),transparent) right/.8rem 100% no-repeat scroll}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top;white-space:nowrap}
th{color:var(--faint);font-weight:600}td.t,th.t{text-align:left;white-space:normal;min-width:6rem}
td.good{color:var(--good)}td.bad{color:var(--bad);font-weight:600}
figure{margin:1rem 0;max-width:46rem}figcaption{color:var(--faint);font-size:.9rem;margin-top:.3rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:0 1rem}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{fill:var(--ink);font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}svg .faint{fill:var(--faint)}svg .name{font-size:10.5px}
@media(max-width:34rem){svg text{font-size:16px}svg .name{font-size:12.5px}}
button{font:inherit;min-width:2.4rem;padding:.1rem .5rem;color:var(--ink);background:var(--shade);border:1px solid var(--line);border-radius:4px}
.told{color:var(--faint);font-size:.9rem}dt{margin-top:.9rem;font-weight:600}dt .told{font-weight:400}dd{margin:.1rem 0 0}.good{color:var(--good)}.bad{color:var(--bad)}
.matrix td,.matrix th{padding:.2rem .4rem;border:1px solid var(--line);min-width:2.2rem;-webkit-print-color-adjust:exact;print-color-adjust:exact}
.matrix th.t{position:sticky;left:0;background:var(--paper);color:var(--ink);min-width:5.6rem;max-width:9rem;
white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.worst{display:grid;grid-template-columns:repeat(auto-fill,minmax(7rem,1fr));gap:.9rem .6rem;margin:.8rem 0}.worst figure{margin:0}
.worst img{display:block;width:100%;max-width:6rem;image-rendering:pixelated}.worst figcaption{line-height:1.3;overflow-wrap:anywhere}
.worst b{color:var(--ink)}
details{margin:.8rem 0}summary{cursor:pointer;color:var(--c0)}
@media print{body{font-size:11px}main{max-width:none;padding:0}figure,tr,h2,h3{break-inside:avoid}h2,h3{break-after:avoid}
a{color:inherit;text-decoration:none}.screen{display:none}.scroll{overflow:visible}
.matrix{font-size:.55rem}.matrix td,.matrix th{min-width:0;padding:.1rem .2rem}.matrix th.t{min-width:0;max-width:6rem}.worst{grid-template-columns:repeat(6,1fr)}}
)";

std::string cell_class(Cell::Mark mark, bool text) {
  if (mark == Cell::Mark::none) return text ? " class=\"t\"" : "";
  return std::string(" class=\"") + (text ? "t " : "") +
         (mark == Cell::Mark::bad ? "bad" : "good") + "\"";
}

}  // namespace

void Page::heading(int level, const std::string& text, const std::string& id) {
  const std::string tag = "h" + std::to_string(level);
  body_ += "<" + tag + (id.empty() ? "" : " id=\"" + escape(id) + "\"") + ">" + escape(text) +
           "</" + tag + ">\n";
}

void Page::paragraph(const std::string& text) {
  body_ += "<p>" + escape(text) + "</p>\n";
}

void Page::table(const std::vector<std::string>& columns, const std::vector<Row>& rows,
                 std::size_t text_columns) {
  body_ += "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
  for (std::size_t i = 0; i < columns.size(); ++i)
    body_ += std::string("<th scope=\"col\"") + (i < text_columns ? " class=\"t\"" : "") + ">" +
             escape(columns[i]) + "</th>";
  body_ += "</tr></thead><tbody>\n";
  for (const Row& row : rows) {
    body_ += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      body_ +=
          "<td" + cell_class(row[i].mark, i < text_columns) + ">" + escape(row[i].text) + "</td>";
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void Page::figure(const std::string& svg, const std::string& caption, const std::string& id) {
  body_ += "<figure" + (id.empty() ? "" : " id=\"" + escape(id) + "\"") + ">" + svg +
           "<figcaption>" + escape(caption) + "</figcaption></figure>\n";
}

void Page::begin_fold(const std::string& summary) {
  body_ += "<details><summary>" + escape(summary) + "</summary>\n";
}

void Page::script(const std::string& code) {
  if (std::find(scripts_.begin(), scripts_.end(), code) == scripts_.end()) scripts_.push_back(code);
}

std::string Page::str() const {
  std::string page =
      std::string(page_begin) +
      "\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n" +
      (reload_ > 0.0 ? "<meta http-equiv=\"refresh\" content=\"" +
                           std::to_string(std::max(1L, std::lround(reload_))) + "\">\n"
                     : "") +
      "<title>" + escape(title_) + "</title>\n<style>" + style +
      "</style>\n</head>\n<body>\n<main>\n" + body_ + "</main>\n";
  for (const std::string& code : scripts_) page += "<script>\n" + code + "</script>\n";
  return page + "</body>\n</html>\n";
}

}  // namespace duplex::tools::reports
