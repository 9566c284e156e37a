// The look of the ladder's report.
#pragma once

namespace tilewright::cli {

inline constexpr const char* kLadderCss = R"css(
:root { color-scheme: light dark;
  --paper:#fbfaf7; --card:#ffffff; --ink:#1d2733; --soft:#5d6b7a; --line:#e2e0d9; --accent:#0b6e4f;
  --good:#0b6e4f; --bad:#b3261e;
  --c0:#9aa5b1; --c1:#7b8794; --c2:#b79268; --c3:#c77d3f; --c4:#b9562f; --c5:#8f6bb3;
  --c6:#5b64b8; --c7:#2f7fc1; --c8:#178f8a; --c9:#0b6e4f; --c10:#4f9d2f; --c11:#83a51c;
  --c12:#d03a6a; --c13:#e07a1f; --c14:#6a4c93; }
@media (prefers-color-scheme: dark) { :root {
  --paper:#11161c; --card:#182029; --ink:#e8edf2; --soft:#97a6b5; --line:#2a3541; --accent:#5fd3a8;
  --good:#5fd3a8; --bad:#ff8a80;
  --c0:#6f7c89; --c1:#8b98a5; --c2:#c9a77d; --c3:#e09a5f; --c4:#e0764e; --c5:#b594d8;
  --c6:#8d96ee; --c7:#62aef0; --c8:#46c2bd; --c9:#5fd3a8; --c10:#8ad664; --c11:#bcd94f;
  --c12:#ff7aa5; --c13:#ffab5c; --c14:#b295dd; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--paper); color:var(--ink);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; }
main { max-width:1180px; margin:0 auto; padding:48px 28px 80px; }
h1 { font-size:38px; line-height:1.15; margin:0 0 8px; letter-spacing:-.02em; }
h2 { font-size:23px; margin:56px 0 6px; letter-spacing:-.01em; }
h3 { font-size:16px; margin:0 0 8px; }
p { max-width:74ch; margin:6px 0 16px; color:var(--soft); }
.sub { color:var(--soft); margin:0 0 28px; max-width:none; }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(230px,1fr)); gap:16px; }
.card,figure { background:var(--card); border:1px solid var(--line); border-radius:14px; }
.card { padding:18px 20px; }
.card b { display:block; font-size:31px; line-height:1.2; letter-spacing:-.02em;
  font-variant-numeric:tabular-nums; }
.card span { color:var(--soft); font-size:14px; }
.good { color:var(--good); } .bad { color:var(--bad); }
.plots { display:grid; grid-template-columns:repeat(auto-fit,minmax(480px,1fr)); gap:18px; }
figure { margin:0 0 18px; padding:18px 20px 12px; overflow-x:auto; }
svg { width:100%; height:auto; display:block; font-size:12px; }
svg text { fill:var(--ink); } svg .tick,svg .unit { fill:var(--soft); font-size:11px; }
svg .note { fill:var(--soft); font-size:12.5px; } svg .label { font-weight:600; font-size:13px; }
svg .name { font-weight:600; }
svg .grid { stroke:var(--line); } svg .ceiling { stroke:var(--soft); stroke-dasharray:2 4; }
svg path { fill:none; stroke-width:2.2; stroke-linejoin:round; }
svg .peer path { stroke-dasharray:6 4; }
table { border-collapse:collapse; width:100%; font-size:14px; font-variant-numeric:tabular-nums; }
th,td { padding:6px 8px; text-align:right; border-bottom:1px solid var(--line);
  white-space:nowrap; }
th { color:var(--soft); font-weight:600; white-space:normal; vertical-align:bottom; }
th:first-child,td:first-child { text-align:left; }
td.text { text-align:left; white-space:normal; color:var(--soft); }
td.most { font-weight:700; color:var(--accent); } td.none { color:var(--soft); }
code { font-size:.92em; }
footer { margin-top:60px; color:var(--soft); font-size:14px; }
@media (max-width:640px) { .plots { grid-template-columns:1fr; } h1 { font-size:30px; } }
)css";

inline constexpr int kLadderColors = 15;

}  // namespace tilewright::cli
