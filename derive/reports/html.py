"""The HTML writer: one file that needs no network. MathJax 4 is inlined, because it alone wraps long equations."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from derive.layout import plain_html, render
from derive.reports.document import Block, Code, Document, Equation, Figure, Gallery, Section, Steps, Table, Text

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fdfdfb; --faint: #6b7280; --line: #d9d9d4; --box: #f3f3ef;
  --accent: #9a3412; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6e6e3; --paper: #16181b; --faint: #9ca3af;
  --line: #383b40; --box: #1f2226; --accent: #fdba74; } .figure svg { filter: invert(0.88) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem 1.2rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; line-height: 1.2; margin-bottom: 0.2rem; } h2 { margin-top: 2.6rem; font-size: 1.35rem;
  border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
.subtitle, figcaption, caption, .note { color: var(--faint); font-size: 0.92rem; }
nav { position: sticky; top: 0; z-index: 2; background: var(--paper); border-bottom: 1px solid var(--line);
  max-height: 40vh; overflow-y: auto; font-size: 0.88rem; } a { color: var(--accent); }
nav ol { display: flex; flex-wrap: wrap; gap: 0 1.1rem; list-style: none; padding: 0.35rem 0; margin: 0; }
section { scroll-margin-top: 4.5rem; } @media (min-width: 86rem) { nav { position: fixed; left: 1rem; top: 2rem;
  width: calc(50vw - 32rem); max-width: 15rem; max-height: 92vh; border: 0; } nav ol { display: block; }
  nav li { margin: 0.4rem 0; } section { scroll-margin-top: 1rem; } }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: 0.6rem; }
.gallery svg { width: 100%; }
.equation { margin: 0.6rem 0; max-width: 100%; } .scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; margin: 0.6rem 0; width: 100%; } caption { caption-side: bottom; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: 0.35rem 0.6rem; text-align: left; vertical-align: top; }
th, td:first-child { overflow-wrap: normal; }
.columns :is(th, td):not(:last-child) { width: 1%; padding-right: 1.4rem; }
.figure { margin: 1.2rem 0; text-align: center; } .figure svg { max-width: 100%; height: auto; }
figcaption { text-align: left; }
pre { background: var(--box); padding: 0.8rem 1rem; white-space: pre-wrap; border-radius: 4px; font-size: 0.88rem; }
code { font-family: ui-monospace, monospace; font-size: 0.92em; background: var(--box); }
details { border-left: 3px solid var(--line); padding-left: 0.9rem; margin: 0.8rem 0; }
summary { cursor: pointer; color: var(--accent); } mjx-container { font-size: 94% !important; }
mjx-container[display="true"] { max-width: 100%; }
@media (max-width: 40rem) { body { padding: 0.8rem 0.8rem 3rem; } .equation, th, td { font-size: 0.86rem; }
  th, td { padding: 0.3rem 0.35rem; } details { padding-left: 0.5rem; } h1 { font-size: 1.5rem; }
  .columns tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line); }
  .columns :is(th, td) { border: 0; flex: 0 0 auto; padding-right: 0.35rem; }
  .columns :is(th, td):not(:last-child) { width: auto; }
  .columns :is(th, td):first-child { min-width: 6.3rem; } .columns :is(th, td):nth-child(2) { min-width: 3.6rem; }
  .columns :is(th, td):nth-child(3) { min-width: 1.8rem; } .columns :is(th, td):last-child { flex: 1 1 auto; } }
@media print { nav { display: none; } body { max-width: none; } details { border: 0; } h2 { break-after: avoid; }
  .figure, table, .equation { break-inside: avoid; } summary, summary + .equation { break-after: avoid; }
  .figure:has(.gallery) { break-inside: auto; } .gallery { grid-template-columns: repeat(3, 1fr); } }
"""

SHORT = 10
"""So many characters an exponent or a power of a logarithm has at most."""

_MATHJAX = """
window.MathJax = {
  loader: {require(url) {
    const name = url.split('/').pop().replace('.js', '');
    if (!window.glyphs[name]) return Promise.reject(new Error('no glyphs: ' + name));
    window.glyphs[name]();
    return Promise.resolve();
  }},
  tex: {inlineMath: [['\\\\(', '\\\\)']], displayMath: [['\\\\[', '\\\\]']]},
  svg: {fontCache: 'local'},
  output: {displayOverflow: 'linebreak', linebreaks: {inline: true, width: '89%', lineleading: 0.4}},
  options: {ignoreHtmlClass: 'tex2jax_ignore|mathjax_ignore',
            processHtmlClass: 'tex2jax_process|mathjax_process|math|output_area',
            enableMenu: false, enableEnrichment: false, enableSpeech: false, enableBraille: false,
            enableExplorer: false, menuOptions: {settings: {enrich: false, speech: false, braille: false,
            collapsible: false, assistiveMml: false}}},
  startup: {ready() {
    const {LinebreakVisitor, NOBREAK} = MathJax._.output.common.LinebreakVisitor;
    const BINARY = 2, RELATION = 3;
    MathJax.config.output.linebreaks.LinebreakVisitor = class extends LinebreakVisitor {
      moPenalty(mo) {  // a term is broken only where it is longer than a line
        const penalty = super.moPenalty(mo) + 2000 * this.state.depth;
        return [BINARY, RELATION].includes(mo.node.texClass) || penalty >= NOBREAK ? penalty : penalty + 20000;
      }
    };
    MathJax.startup.defaultReady();
    const shift = window.innerWidth < 640 ? 1 : 2.5;  // terms hang under their equation, broken terms further in
    MathJax.startup.input[0].postFilters.add(({math, data}) => { if (math.display) data.root.walkTree(node => {
      if (!node.isKind('mo') && !node.isKind('mspace')) return;
      for (let at = node.parent; at; at = at.parent) if (at.isKind('mfrac') || at.isKind('mtable')) return;
      const joins = [BINARY, RELATION].includes(node.texClass);
      Object.entries({indentalign: 'left', indentalignfirst: 'left', indentshiftfirst: '0',
                      indentshift: `${joins ? shift : shift + 1.5}em`})
        .forEach(([key, value]) => node.attributes.set(key, value));
    }); });
    addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(d => { d.open = true; }));
    MathJax.startup.promise.then(() => { document.documentElement.dataset.math = 'done'; }); }}
};
"""


@cache
def mathjax_bundle() -> str:
    """MathJax with its configuration, and the font files that it would fetch as functions that its loader calls."""
    vendor = files("derive.reports").joinpath("vendor")
    fonts = sorted((f.name, f.read_text(encoding="utf-8")) for f in vendor.joinpath("dynamic").iterdir())
    glyphs = ",".join(f"'{name.removesuffix('.js')}'(){{{source}}}" for name, source in fonts)
    source = f"window.glyphs = {{{glyphs}}};\n" + vendor.joinpath("tex-svg.js").read_text(encoding="utf-8")
    return _MATHJAX + source.replace("</script", "<\\/script")


def _inline(text: str) -> str:
    return render(text, plain_html, lambda c: f"<code>{escape(c)}</code>", lambda m: rf"\({escape(m)}\)")


def _ends_in_formulas(table: Table) -> bool:
    """Whether a table of four columns is a name, two short ones and a long one, which then gets the room."""
    if len(table.header) != 4 or not table.rows:
        return False
    longest = [max(len(str(row[k])) for row in table.rows) for k in range(4)]
    return max(longest[1:3]) <= SHORT and longest[3] > 2 * max(longest[1:3])


def _table(table: Table) -> str:
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in table.header)
    body = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    caption = f"<caption>{_inline(table.caption)}</caption>" if table.caption else ""
    kind = ' class="columns"' if _ends_in_formulas(table) else ""
    return (
        f'<div class="scroll"><table{kind}>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Equation(latex, note):
            tail = f'<p class="note">{_inline(note)}</p>' if note else ""
            return f'<div class="equation">\\[{escape(latex)}\\]</div>{tail}'
        case Table():
            return _table(block)
        case Figure(_, svg, caption):
            picture = svg[svg.index("<svg") :]
            return f'<figure class="figure">{picture}<figcaption>{_inline(caption)}</figcaption></figure>'
        case Gallery(panels, caption):
            pictures = "".join(f"<div>{panel.svg[panel.svg.index('<svg') :]}</div>" for panel in panels)
            return (
                f'<figure class="figure"><div class="gallery">{pictures}</div>'
                f"<figcaption>{_inline(caption)}</figcaption></figure>"
            )
        case Code(source):
            return f"<pre>{escape(source)}</pre>"
        case Steps(summary, blocks, folded):
            inner = "".join(_block(b) for b in blocks)
            return f"<details{'' if folded else ' open'}><summary>{_inline(summary)}</summary>{inner}</details>"


def _section(section: Section) -> str:
    body = "".join(_block(block) for block in section.blocks)
    return f'<section id="{section.anchor}"><h2>{_inline(section.title)}</h2>{body}</section>'


def write_html(document: Document) -> str:
    """The whole document as HTML text."""
    contents = "".join(f'<li><a href="#{s.anchor}">{_inline(s.title)}</a></li>' for s in document.sections)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(document.title)}</title><style>{_STYLE}</style>"
        f"<script>{mathjax_bundle()}</script></head><body>"
        f'<h1>{_inline(document.title)}</h1><p class="subtitle">{_inline(document.subtitle)}</p>'
        f"<nav><ol>{contents}</ol></nav>" + "".join(_section(s) for s in document.sections) + "</body></html>\n"
    )
