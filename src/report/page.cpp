#include "report/page.h"

namespace redco {

// The colors --c0 to --c7 have a contrast of at least 3 against a card. For normal sight, protanopia,
// deuteranopia and weak tritanopia (Machado et al. 2009) any two differ by at least 0.12 in OKLab.
const char* const kReportStyle = R"css(
:root { color-scheme: light dark;
  --bg: #f5f6f8; --card: #fff; --text: #1b1f24; --soft: #59636e; --line: #d9dee5; --grid: #e6e9ee; --link: #1f5fbf;
  --ok: #00716a; --on: #1f5fbf; --stop: #8a5a00; --bad: #b3261e;
  --c0: #3e7fbd; --c1: #c77b0a; --c2: #00616d; --c3: #7831ff; --c4: #580c00; --c5: #8c988f; --c6: #a33c0a; --c7: #1b2a4e; }
@media (prefers-color-scheme: dark) { :root {
  --bg: #14171b; --card: #1c2026; --text: #e6e9ed; --soft: #a2acb8; --line: #343b45; --grid: #2b313a; --link: #8ec1ff;
  --ok: #5fd0b4; --on: #8ec1ff; --stop: #fdc548; --bad: #ff8a80;
  --c0: #8ec1ff; --c1: #ea8120; --c2: #44b298; --c3: #9586ff; --c4: #fdc548; --c5: #d2eae0; --c6: #b93a67; --c7: #316cb9; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text); -webkit-text-size-adjust: 100%;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main, header, footer { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 24px; line-height: 1.3; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 12px; }
.sub { color: var(--soft); margin: 6px 0; overflow-wrap: anywhere; } .sub:empty { display: none; }
.badge { display: inline-block; font-size: 13px; line-height: 1.5; font-weight: 600; padding: 1px 10px; border-radius: 999px;
  border: 1px solid currentColor; color: var(--soft); vertical-align: 3px; white-space: nowrap; }
h1 .badge { margin-left: 10px; } td .badge { vertical-align: baseline; }
.badge.running { color: var(--on); } .badge.finished { color: var(--ok); } .badge.stopped { color: var(--stop); }
.badge.failed, .badge.killed { color: var(--bad); }
nav { margin: 12px 0 0; display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 14px; }
a { color: var(--link); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 12px; margin-top: 16px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; min-width: 0; }
.card span { display: block; font-size: 13px; line-height: 1.35; color: var(--soft); overflow-wrap: anywhere; }
.card b { font-size: 20px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.card b { margin-right: 6px; } .card small { display: inline-block; color: var(--soft); font-size: 13px; white-space: nowrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 460px), 1fr)); gap: 14px; }
.chart { position: relative; margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 12px 6px; min-width: 0; }
.chart figcaption { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; margin: 0 4px 6px; }
.chart svg { display: block; width: 100%; height: auto; touch-action: pan-y; }
.chart text { fill: var(--soft); font-size: 11.5px; font-variant-numeric: tabular-nums; }
.chart text.y { text-anchor: end; } .chart text.x { text-anchor: middle; }
.grid { stroke: var(--grid); }
.line { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.line.d1 { stroke-dasharray: 7 4; } .line.d2 { stroke-dasharray: 1.5 4; }
.band { fill: var(--c); opacity: .2; } circle { fill: var(--c); stroke: var(--card); stroke-width: 1.2; }
.cross { stroke: var(--soft); stroke-dasharray: 3 3; visibility: hidden; }
.mark { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; }
.tip { position: absolute; z-index: 1; display: none; pointer-events: none; background: var(--text); color: var(--card);
  border-radius: 6px; padding: 4px 9px; font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere;
  width: max-content; max-width: calc(100% - 8px); font-variant-numeric: tabular-nums; }
.note { color: var(--soft); font-size: 12px; margin: 2px 4px; }
.key { font-size: 13px; color: var(--soft); overflow-wrap: anywhere; }
.key::before { content: ""; display: inline-block; width: 18px; height: 0; border-top: 3px solid var(--c);
  margin-right: 6px; vertical-align: 4px; }
.key.d1::before { border-top-style: dashed; } .key.d2::before { border-top-style: dotted; }
.key.dots::before { width: 8px; height: 8px; border: 0; border-radius: 50%; background: var(--c); vertical-align: 1px; }
.key.resumed::before { width: 0; height: 13px; border: 0; border-left: 2px dashed var(--soft); vertical-align: -2px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 0 0 12px; }
.k0 { --c: var(--c0); } .k1 { --c: var(--c1); } .k2 { --c: var(--c2); } .k3 { --c: var(--c3); }
.k4 { --c: var(--c4); } .k5 { --c: var(--c5); } .k6 { --c: var(--c6); } .k7 { --c: var(--c7); }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.scroll.fit { width: fit-content; max-width: 100%; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: 6px 12px; border-bottom: 1px solid var(--grid); }
tr:last-child > * { border-bottom: 0; } th { color: var(--soft); font-weight: 600; font-size: 13px; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.t { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 180px; max-width: 520px; }
.compare th:first-child { position: sticky; left: 0; background: var(--card); max-width: 42vw; }
.compare th .key, .compare th code { color: var(--text); font-weight: 400; }
.compare th .key { display: block; min-width: 118px; } .compare th code { display: block; min-width: 150px; }
.compare td small { display: block; color: var(--soft); font-size: 12px; }
.compare td .why { min-width: 200px; max-width: 320px; overflow-wrap: anywhere; }
.compare td.won { font-weight: 700; } .compare td.won small { font-weight: 400; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(130px, 1fr)); gap: 12px; }
.pictures figure { margin: 0; font-size: 12px; color: var(--soft); overflow-wrap: break-word; }
.pictures img { width: 100%; image-rendering: pixelated; border: 1px solid var(--grid); }
.confusion td, .confusion th { border: 1px solid var(--grid); vertical-align: middle; }
.confusion th { white-space: normal; overflow-wrap: break-word; min-width: 78px; max-width: 150px; }
.confusion td[style] { background: color-mix(in srgb, var(--c1) calc(var(--p) * 60%), transparent); min-width: 52px; }
.confusion td.hit { background: color-mix(in srgb, var(--c0) calc(var(--p) * 60%), transparent); font-weight: 600; }
.confusion td.edge { color: var(--soft); }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
td code, th code { overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; margin: 8px 0;
  overflow: auto; max-height: 480px; }
pre.error { border-left: 4px solid var(--bad); white-space: pre-wrap; overflow-wrap: anywhere; margin-top: 16px; }
details { margin: 8px 0; } summary { cursor: pointer; color: var(--soft); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 14px; }
.two > * { min-width: 0; }
.bar { display: flex; height: 14px; border-radius: 7px; overflow: hidden; margin: 4px 0 10px; background: var(--grid); }
.bar i { display: block; height: 100%; background: var(--c); }
.bar + .scroll .key::before { width: 12px; height: 12px; border: 0; border-radius: 3px; background: var(--c); vertical-align: -1px; }
.phases td:first-child { width: 100%; } .phases td > div { display: flex; flex-wrap: wrap; align-items: center; gap: 0 12px; }
.phases span { flex: 0 1 150px; overflow-wrap: anywhere; } .phases .bar { flex: 1 1 100px; min-width: 90px; margin: 4px 0; }
.scroll + .sub { margin-top: 18px; }
.warn { border-left: 4px solid var(--stop); padding: 6px 12px; margin: 10px 0; background: var(--card); overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 13px; margin: 34px auto 24px; }
@media (max-width: 600px) {
  main, header, footer { padding: 0 12px; } header { padding-top: 18px; }
  .chart text { font-size: 18px; } .line { stroke-width: 2.6; } circle { r: 5px; }
  .cards { grid-template-columns: repeat(auto-fill, minmax(132px, 1fr)); gap: 8px; }
  .card { padding: 8px 11px; } th, td { padding: 6px 9px; } #profile th.n { white-space: normal; } }
@media (min-width: 601px) { .compare th .short { white-space: nowrap; } }
@media print { pre { max-height: none; } nav { display: none; } }
)css";

const char* const kReportScript = R"js(
for (const figure of document.querySelectorAll(".chart")) {
  const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip"), cross = figure.querySelector(".cross");
  const { names, lines } = JSON.parse(figure.querySelector("script").textContent);
  const { left, right, width, x0, x1 } =
    Object.fromEntries(Object.entries(svg.dataset).map(([k, v]) => [k, +v]));
  const hide = () => { tip.style.display = "none"; cross.style.visibility = "hidden"; };
  const nearest = (points, step) =>
    points.reduce((best, p) => Math.abs(p[0] - step) < Math.abs(best[0] - step) ? p : best);
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), frame = figure.getBoundingClientRect(), scale = width / box.width;
    const step = x0 + ((event.clientX - box.left) * scale - left) / (right - left) * (x1 - x0);
    const near = nearest(lines.map(points => nearest(points, step)), step)[0];
    const text = ["step " + Math.round(near)];
    lines.forEach((points, i) => {
      const p = nearest(points, near), same = Math.round(p[0]) === Math.round(near);
      text.push((names[i] ? names[i] + "  " : "") + p[1] + (same ? "" : "  (step " + Math.round(p[0]) + ")"));
    });
    const x = left + (near - x0) / (x1 - x0) * (right - left);
    cross.setAttribute("x1", x); cross.setAttribute("x2", x); cross.style.visibility = "visible";
    tip.textContent = text.join("\n");
    tip.style.display = "block";
    const at = x / scale + box.left - frame.left;
    tip.style.left = Math.max(4, Math.min(at + 12, figure.clientWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = (event.clientY - frame.top + 14) + "px";
  });
}
)js";

}  // namespace redco
