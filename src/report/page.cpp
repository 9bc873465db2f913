#include "report/page.h"

namespace redco {

const char* const kReportStyle = R"css(
:root { color-scheme: light dark;
  --bg: #f6f7f9; --card: #fff; --text: #1b1f24; --soft: #5b6470; --line: #d9dee5; --grid: #e9ecf0;
  --c0: #2563eb; --c1: #d9480f; --c2: #07855a; --c3: #8b2fc9; --c4: #b8860b; --c5: #c2255c; --ok: #07855a; }
@media (prefers-color-scheme: dark) { :root {
  --bg: #14171b; --card: #1c2026; --text: #e6e9ed; --soft: #9aa4b1; --line: #343b45; --grid: #2a3038;
  --c0: #6ea8fe; --c1: #ff9f5a; --c2: #4fd1a1; --c3: #cf9bff; --c4: #e6c35c; --c5: #ff8fb3; --ok: #4fd1a1; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main, header { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 34px 0 12px; }
.sub { color: var(--soft); margin: 4px 0 0; overflow-wrap: anywhere; }
.badge { display: inline-block; font-size: 13px; font-weight: 600; padding: 2px 10px; border-radius: 999px;
  border: 1px solid var(--line); color: var(--soft); vertical-align: 3px; margin-left: 8px; }
.badge.on { color: var(--ok); border-color: currentColor; }
nav { margin: 14px 0 0; display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 14px; }
a { color: var(--c0); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-top: 20px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; }
.card span { display: block; font-size: 13px; color: var(--soft); }
.card b { font-size: 20px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 14px; }
.chart { position: relative; margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 12px 6px; }
.chart figcaption { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; margin: 0 4px 4px; }
.chart svg { display: block; width: 100%; height: auto; }
.chart text { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums; }
.chart text.y { text-anchor: end; } .chart text.x { text-anchor: middle; }
.grid { stroke: var(--grid); } .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.band { stroke: none; opacity: .18; }
.cross { stroke: var(--soft); stroke-dasharray: 3 3; visibility: hidden; }
.tip { position: absolute; display: none; pointer-events: none; background: var(--text); color: var(--card);
  border-radius: 6px; padding: 3px 8px; font-size: 12px; white-space: pre; font-variant-numeric: tabular-nums; }
.note { color: var(--soft); font-size: 12px; margin: 2px 4px; }
.key { font-size: 13px; color: var(--soft); } .key::before { content: ""; display: inline-block; width: 14px;
  height: 3px; border-radius: 2px; margin-right: 6px; vertical-align: 3px; background: var(--c); }
.k0 { --c: var(--c0); } .k1 { --c: var(--c1); } .k2 { --c: var(--c2); }
.k3 { --c: var(--c3); } .k4 { --c: var(--c4); } .k5 { --c: var(--c5); }
.line { stroke: var(--c); } .band, circle { fill: var(--c); }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: 6px 12px; border-bottom: 1px solid var(--grid); }
tr:last-child td { border-bottom: 0; } th { color: var(--soft); font-weight: 600; font-size: 13px; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.t { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 180px; max-width: 520px; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; margin: 8px 0;
  overflow: auto; max-height: 480px; }
details { margin: 8px 0; } summary { cursor: pointer; color: var(--soft); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 14px; }
.bar { display: flex; height: 14px; border-radius: 7px; overflow: hidden; margin: 4px 0 10px; background: var(--grid); }
.bar i { display: block; height: 100%; background: var(--c); }
.warn { border-left: 4px solid var(--c1); padding: 6px 12px; margin: 10px 0; background: var(--card); }
footer { color: var(--soft); font-size: 13px; max-width: 1240px; margin: 34px auto 24px; padding: 0 20px; }
@media print { pre { max-height: none; } nav { display: none; } }
)css";

const char* const kReportScript = R"js(
for (const figure of document.querySelectorAll(".chart")) {
  const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip"), cross = figure.querySelector(".cross");
  const lines = JSON.parse(figure.querySelector("script").textContent);
  const names = [...figure.querySelectorAll(".key")].map(k => k.textContent);
  const x0 = +svg.dataset.x0, x1 = +svg.dataset.x1, left = 58, right = 548;
  const hide = () => { tip.style.display = "none"; cross.style.visibility = "hidden"; };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), scale = 560 / box.width;
    const step = x0 + ((event.clientX - box.left) * scale - left) / (right - left) * (x1 - x0);
    let near = null;
    for (const line of lines) for (const p of line)
      if (near === null || Math.abs(p[0] - step) < Math.abs(near - step)) near = p[0];
    if (near === null) return hide();
    const text = ["step " + Math.round(near)];
    lines.forEach((line, i) => {
      let best = null;
      for (const p of line) if (!best || Math.abs(p[0] - near) < Math.abs(best[0] - near)) best = p;
      if (!best) return;
      const at = Math.round(best[0]) === Math.round(near) ? "" : "  (step " + Math.round(best[0]) + ")";
      text.push((names[i] ? names[i] + "  " : "") + best[1] + at);
    });
    const x = left + (near - x0) / (x1 - x0) * (right - left);
    cross.setAttribute("x1", x); cross.setAttribute("x2", x); cross.style.visibility = "visible";
    tip.textContent = text.join("\n");
    tip.style.display = "block";
    const at = x / scale + box.left - figure.getBoundingClientRect().left;
    tip.style.left = Math.min(at + 12, figure.clientWidth - tip.offsetWidth - 6) + "px";
    tip.style.top = (event.clientY - figure.getBoundingClientRect().top + 14) + "px";
  });
}
)js";

}  // namespace redco
