#include "apps/report/style.h"

namespace mjp::app {

const char* const kReportStyle = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#16202c;--soft:#5c6773;--line:#dfe3e8;
--good:#1a7f4b;--bad:#c0362c;--warn:#9a6700;--s0:#2563c9;--s1:#c8601a;--s2:#128a6d;--s3:#8b43b8;--s4:#b3364f;--s5:#5b6472}
@media (prefers-color-scheme:dark){:root{--page:#11161c;--card:#1a2129;--ink:#e6ebf0;--soft:#98a4b0;--line:#2e3843;
--good:#4cc38a;--bad:#ff7b6e;--warn:#e0b050;--s0:#6ea8ff;--s1:#ff9e57;--s2:#45cfa9;--s3:#cd95f0;--s4:#ff8ba0;--s5:#a5b0bc}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:3.6rem}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header>div,main{max-width:68rem;margin:0 auto;padding:0 1.2rem}
header{padding:1.8rem 0 .6rem}
h1{font-size:1.7rem;line-height:1.2;margin:0}
header p{color:var(--soft);margin:.4rem 0 0}
nav{position:sticky;top:0;z-index:2;display:flex;gap:.3rem;overflow-x:auto;background:var(--page);border-bottom:1px solid var(--line);
padding:.5rem max(1.2rem,calc((100% - 65.6rem)/2))}
nav a{color:var(--soft);text-decoration:none;white-space:nowrap;padding:.25rem .6rem;border-radius:.4rem;font-size:.92rem}
nav a:hover,nav a:focus-visible{color:var(--ink);background:var(--card)}
section{background:var(--card);border:1px solid var(--line);border-radius:.7rem;padding:1.1rem 1.3rem 1.3rem;margin:1.1rem 0}
h2{font-size:1.15rem;margin:0 0 .3rem}h3{font-size:1rem;margin:1.2rem 0 .4rem}
.note{color:var(--soft);margin:0 0 .9rem;font-size:.93rem;max-width:60rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(15rem,1fr));gap:1rem;margin:1.1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-left:.3rem solid var(--c);border-radius:.7rem;padding:.9rem 1.1rem}
.tile .name{font-weight:600;overflow-wrap:anywhere}.tile .big{font-size:2.1rem;font-weight:650;line-height:1.15;font-variant-numeric:tabular-nums}
.tile small{color:var(--soft);display:block}
.scroll{overflow-x:auto;margin-top:.7rem}
table{border-collapse:collapse;width:100%;font-size:.93rem;font-variant-numeric:tabular-nums}
th{text-align:left;color:var(--soft);font-weight:600;border-bottom:1px solid var(--line);padding:.35rem .8rem .35rem 0;vertical-align:bottom}
td{border-bottom:1px solid var(--line);padding:.4rem .8rem .4rem 0;vertical-align:top}
th:not(:first-child),td:not(:first-child){text-align:right}td:not(:first-child){white-space:nowrap}
td.text,table.text td{text-align:left!important;white-space:normal!important;overflow-wrap:anywhere}table.text th{text-align:left!important}
tr:last-child td{border-bottom:0}
svg{display:block;width:100%;height:auto;max-width:46rem}svg text{fill:var(--soft);font:13px system-ui,"DejaVu Sans",sans-serif}
svg .value{fill:var(--ink);font-weight:600}svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.9rem;margin:.2rem 0 .6rem}
.legend i{display:inline-block;width:1.5rem;height:0;border-top:.2rem solid var(--c);vertical-align:middle;margin-right:.4rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));gap:1.4rem}
.pill{display:inline-block;border:1px solid currentColor;border-radius:1rem;padding:.05rem .6rem;font-size:.85rem;font-weight:600}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}.soft{color:var(--soft)}
.dot{display:inline-block;width:.7rem;height:.7rem;border-radius:50%;background:var(--c);margin-right:.45rem}
.filters{display:flex;gap:.4rem;flex-wrap:wrap;margin:.3rem 0 .9rem}
button{font:inherit;font-size:.9rem;color:var(--ink);background:var(--page);border:1px solid var(--line);border-radius:.5rem;padding:.3rem .8rem;cursor:pointer}
button[aria-pressed=true]{border-color:var(--s0);color:var(--s0);font-weight:600}
.videos{display:grid;grid-template-columns:repeat(auto-fill,minmax(14rem,1fr));gap:.9rem}
.video{position:relative;border:1px solid var(--line);border-top:.22rem solid var(--c);border-radius:.6rem;overflow:hidden;background:var(--page)}
.video video{display:block;width:100%;aspect-ratio:10/7;background:#000;object-fit:contain}
.video .link{display:grid;place-items:center;aspect-ratio:10/7;border-bottom:1px solid var(--line);padding:1rem;text-align:center}
.video:has(video:not([controls]))::after{content:"\25B6";position:absolute;right:.7rem;bottom:.5rem;color:var(--soft)}
.video div.what{padding:.5rem .7rem;font-size:.88rem}.video b{font-weight:600}
a{color:var(--s0)}
details{margin-top:.9rem}summary{cursor:pointer;font-weight:600}
code{font:.88em ui-monospace,"DejaVu Sans Mono",monospace;background:var(--page);border:1px solid var(--line);border-radius:.3rem;padding:.05rem .3rem;overflow-wrap:anywhere}
footer{color:var(--soft);font-size:.88rem;margin:1.4rem 0 2.4rem}
[hidden]{display:none!important}
@media (max-width:40rem){header>div,main{padding:0 .8rem}section{padding:.9rem .8rem 1rem}h1{font-size:1.35rem}.videos{grid-template-columns:repeat(auto-fill,minmax(10rem,1fr))}nav{padding-left:.8rem}
th{white-space:nowrap}svg text{font-size:17px}}
@media print{nav,.filters{display:none}section{break-inside:avoid}}
)css";

const char* const kReportScript = R"js(
for (const group of document.querySelectorAll('.filters')) {
  const cards = document.querySelectorAll(group.dataset.cards);
  group.addEventListener('click', event => {
    const button = event.target.closest('button');
    if (!button) return;
    for (const other of group.querySelectorAll('button')) other.setAttribute('aria-pressed', other === button);
    for (const card of cards) card.hidden = !(' ' + card.dataset.in + ' ').includes(' ' + button.dataset.show + ' ');
  });
}
const hovers = matchMedia('(hover: hover)').matches;
for (const video of document.querySelectorAll('video')) {
  const show = shown => () => { video.controls = shown || !video.paused; };
  show(false)();
  video.tabIndex = 0;
  if (hovers) {
    for (const event of ['mouseenter', 'focus']) video.addEventListener(event, show(true));
    for (const event of ['mouseleave', 'blur']) video.addEventListener(event, show(false));
  } else {
    video.addEventListener('click', event => { event.preventDefault(); show(true)(); video.play(); }, {once: true});
  }
  video.addEventListener('play', () => {
    for (const other of document.querySelectorAll('video')) if (other !== video) other.pause();
  });
}
)js";

}  // namespace mjp::app
