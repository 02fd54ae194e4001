// SPDX-License-Identifier: Apache-2.0
// A document as one HTML page.
#include "affinityctl/present/document.hpp"
#include "affinityctl/present/svg.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace affinityctl {

namespace {

// Rows of a table; rows of one that is open, and ways.
constexpr std::size_t most_rows_shown = 512, most_open = 24, most_ways_open = 8;

/// Each colour of a text is readable on --page and on --card, in both schemes: at least 4.5 to 1.
constexpr std::string_view style = R"css(
:root{--page:#ffffff;--card:#f4f6f9;--line:#c3ccd6;--ink:#1c222b;--faint:#545f6d;--good:#14683f;--bad:#b3261e;--name:#0b5f78;--mark:#7a5200}
@media screen and (prefers-color-scheme:dark){
:root{--page:#12161b;--card:#1b2129;--line:#3a4450;--ink:#e6eaf0;--faint:#a3afbd;--good:#6fd3a0;--bad:#ff9a90;--name:#7fd0e6;--mark:#e5c07b}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:75rem;padding:1.25rem;background:var(--page);color:var(--ink);font:1rem/1.5 system-ui,'Noto Sans','DejaVu Sans',sans-serif;overflow-wrap:break-word}
h1{margin:0;font-size:1.5rem}h2{margin:2rem 0 .5rem;font-size:1.2rem;border-bottom:1px solid var(--line)}h3{margin:1.2rem 0 0;font-size:1rem}
p{margin:.4rem 0}header p,footer,.faint,th{color:var(--faint)}a{color:var(--name)}
nav ul,ol{list-style:none;margin:.5rem 0;padding:0}nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem}
.bold{font-weight:600}.good,.held{color:var(--good)}.good,.bad{font-weight:600}.bad{color:var(--bad)}.name{color:var(--name)}.mark{color:var(--mark)}
.problem{border-left:.25rem solid var(--bad);background:var(--card);padding:.4rem .75rem;margin:.5rem 0}.note{border-color:var(--line)}
code,pre{font-family:'DejaVu Sans Mono',Menlo,monospace;font-size:.85rem}code{display:block;white-space:pre-wrap}
pre,.table,.figure{overflow-x:auto;margin:.75rem 0}
th{white-space:nowrap}summary{cursor:pointer;color:var(--name)}table{border-collapse:collapse;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line)}
.figure svg{display:block;height:auto;max-width:max(100%,56rem)}.figure svg>title+rect{fill:none}
.way,.way li{display:flex;align-items:center}.way{flex-wrap:wrap;row-gap:.4rem;font-size:.9rem}.way li:last-child{flex:1 1 14rem}
.stop{min-width:6.5rem;border:1px solid var(--line);border-radius:.4rem;background:var(--card);padding:.2rem .6rem;overflow-wrap:anywhere}.stop span{display:block;font-size:.75rem;color:var(--faint)}
.arrow{padding:0 .5rem;max-width:6.5rem;text-align:center;font-size:.75rem;line-height:1.2}.arrow::after{content:"\2192";display:block;font-size:1.2rem}
@media screen and (max-width:40rem){
body{padding:.75rem}.way,.way li{flex-direction:column;align-items:stretch}.way li:last-child{flex:none}.arrow{max-width:none}
.arrow{display:flex;gap:.5rem;padding:.1rem .75rem}.arrow::after{content:"\2193";order:-1}.way{margin-bottom:1.25rem}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}table,tbody,tr,td{display:block}tr{border:1px solid var(--line);background:var(--card);padding:.3rem .75rem;margin-bottom:.5rem}
td{display:flex;gap:.75rem;border:0;padding:.1rem 0}td::before{content:attr(data-label);flex:0 0 6.5rem;color:var(--faint);font-size:.8rem}}
@media print{html{font-size:9pt}body{max-width:none}nav,summary{display:none}details::details-content{content-visibility:visible;block-size:auto}.table,.figure{overflow:visible}.figure svg{max-width:100%}tr,.problem,.way li,.figure{break-inside:avoid}h2,h3{break-after:avoid}}
)css";

/// A line that is bold as a whole begins a section.
bool is_heading(const Document::Line& line) {
    return line.spans.size() == 1 && line.first.empty() && line.spans[0].look == Document::Look::bold;
}

std::string render(const Document::Line& line) {
    constexpr std::array classes{"", "bold", "good", "bad", "name", "held", "mark"};
    std::string text = xml_text(line.first);
    for (const auto& span : line.spans)
        text += span.look == Document::Look::plain
                    ? xml_text(span.text)
                    : fmt::format("<span class=\"{}\">{}</span>",
                                  classes.at(static_cast<std::size_t>(span.look)), xml_text(span.text));
    return line.as_is ? "<code>" + text + "</code>\n" : "<p>" + text + "</p>\n";
}

std::string render(const Document::Problem& problem) {
    auto text = fmt::format("<div class=\"problem{}\">{}", problem.first.empty() ? " note" : "",
                            xml_text(problem.sentence));
    if (!problem.command.empty()) text += "<code>" + xml_text(problem.command) + "</code>";
    return text + "</div>\n";
}

std::string render(const Document::Verbatim& verbatim) {
    return "<pre tabindex=\"0\">" + xml_text(verbatim.text) + "</pre>\n";
}

std::string render(const Document::Table& table) {
    auto rows = cells_of(table);
    const auto heading = std::move(rows.front());
    const auto end = std::min(rows.size(), most_rows_shown + 1);
    std::string text = "<div class=\"table\"><table><thead><tr>";
    const bool is_open = table.rows.size() <= most_open;
    for (const auto& name : heading)
        text += "<th scope=\"col\">" + xml_text(name) + "</th>";
    text += "</tr></thead>\n<tbody>\n";
    for (std::size_t row = 1; row < end; ++row) {
        text += "<tr>";
        for (std::size_t column = 0; column < heading.size(); ++column)
            text += fmt::format("<td data-label=\"{}\">{}</td>", xml_text(heading[column]),
                                xml_text(rows[row][column]));
        text += "</tr>\n";
    }
    text += "</tbody></table></div>\n";
    if (end < rows.size()) text += fmt::format("<p>and {} more</p>\n", rows.size() - end);
    return is_open
               ? text
               : fmt::format("<details><summary>{} rows</summary>\n{}</details>\n", table.rows.size(), text);
}

std::string render(const Document::Ways& ways) {
    auto text =
        fmt::format("<h3>{}</h3>\n<p class=\"faint\">{}</p>\n", xml_text(ways.title), xml_text(ways.note));
    const bool is_open = ways.ways.size() <= most_ways_open;
    if (!is_open) text += fmt::format("<details><summary>{} ways</summary>\n", ways.ways.size());
    for (const auto& way : ways.ways) {
        text += "<ol class=\"way\">";
        for (const auto& stop : way)
            text += fmt::format("<li>{}<div class=\"stop\"><span>{}</span>{}</div></li>",
                                &stop == &way.front()
                                    ? ""
                                    : fmt::format("<div class=\"arrow\">{}</div>", xml_text(stop.arrow)),
                                xml_text(stop.kind), xml_text(stop.name));
        text += "</ol>\n";
    }
    return is_open ? text : text + "</details>\n";
}

/// Maps, charts and drawings are pictures.
template <class Picture>
std::string render(const Picture& picture) {
    Document sheet;
    sheet.title.clear();
    sheet.add(picture);
    std::string label = "the machine";
    if constexpr (requires { picture.title; }) label = picture.title;
    return fmt::format("<div class=\"figure\" role=\"img\" aria-label=\"{}\" tabindex=\"0\">{}</div>\n",
                       xml_text(label), to_svg(sheet));
}

} // namespace

std::string to_html(const Document& document) {
    std::string links, sections;
    std::size_t number = 0;
    for (const auto& block : document.blocks) {
        if (block.where == Document::Where::text) continue;
        if (const auto* line = std::get_if<Document::Line>(&block.is); line != nullptr && is_heading(*line)) {
            const auto name = xml_text(line->spans[0].text);
            links += fmt::format("<li><a href=\"#part-{}\">{}</a></li>", ++number, name);
            sections +=
                fmt::format("{0}<section aria-labelledby=\"part-{1}\">\n<h2 id=\"part-{1}\">{2}</h2>\n",
                            number == 1 ? "" : "</section>\n", number, name);
            continue;
        }
        sections += std::visit([](const auto& one) { return render(one); }, block.is);
    }
    if (number > 0) sections += "</section>\n";
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n<style>{1}</style></head>\n"
        "<body>\n<header><h1>{0}</h1><p>{2}</p></header>\n<nav aria-label=\"Sections\"><ul>{3}</ul></nav>\n"
        "<main>\n{4}</main>\n</body></html>\n",
        xml_text(document.title), style, xml_text(document.source), links, sections);
}

} // namespace affinityctl
