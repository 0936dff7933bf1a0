// SPDX-License-Identifier: Apache-2.0
// Draws the charts of a report: each .chart names its side and its kind.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("load-data").textContent);
  const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8a6bbf", "#b5a642", "#d55e00"];
  const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
  const height = 220;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let drawn = [];
  let printing = false;

  const text = value => value == null ? "–" : value >= 100 ? value.toFixed(0) : value.toPrecision(3);
  const line = (label, index, more) => ({
    label, stroke: colours[index % colours.length], width: 1.5, points: {show: false},
    value: (_, value) => text(value), ...more});

  const kinds = {
    rate: side => ({
      columns: [side.due, side.ok, failed(side)],
      series: [line("due", 0, {stroke: "#8a949e", dash: [3, 3]}), line("OK", 0), line("failed", 7, {dash: [8, 3]})],
      unit: "calls/s"}),
    codes: side => ({
      columns: side.codes.map(code => code.rates),
      series: side.codes.map((code, i) => line(code.name, (i + 7) % colours.length, {dash: dashes[i % dashes.length]})),
      unit: "calls/s"}),
    latency: side => ({
      columns: [side.p50, side.p99, side.max],
      series: [line("p50", 0), line("p99", 1, {dash: [8, 3]}), line("max", 0, {stroke: "#8a949e", dash: [2, 3]})],
      unit: "ms", log: true}),
    share: side => stacked(side.places),
  };

  function failed(side) {
    return side.times.map((_, i) => side.codes.reduce((sum, code) => sum + code.rates[i], 0));
  }

  // Stacked shares of the calls, in percent. The legend shows each share by itself.
  function stacked(places) {
    const all = places.length ? places[0].calls.map((_, i) => places.reduce((sum, place) => sum + place.calls[i], 0)) : [];
    const shares = places.map(place => place.calls.map((calls, i) => all[i] ? 100 * calls / all[i] : null));
    const sums = [];
    shares.forEach((share, k) => sums.push(share.map((value, i) => value == null ? null : value + (k ? sums[k - 1][i] : 0))));
    const top = places.length - 1;
    return {
      columns: sums.map((_, k) => sums[top - k]),
      series: sums.map((_, k) => line(places[top - k].name, top - k, {
        fill: colours[(top - k) % colours.length], width: 0,
        value: (_plot, _value, _series, i) => i == null ? "–" : text(shares[top - k][i]) + " %"})),
      unit: "%"};
  }

  // Both sides of a comparison have one scale.
  function range(kind) {
    const values = data.sides.flatMap(side => kinds[kind](side).columns.flat()).filter(value => value != null && value > 0);
    const most = values.reduce((a, b) => Math.max(a, b), 0);
    if (kind === "share") return [0, 100];
    if (kind !== "latency") return [0, most * 1.08 || 1];
    const least = values.reduce((a, b) => Math.min(a, b), Infinity);
    return values.length ? [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most * 1.01))] : [1, 10];
  }

  // Draws a line for each act, with the act's number at the top. Numbers that would overlap are drawn
  // one below the other.
  function drawFaults(plot) {
    const {ctx, bbox} = plot;
    const scale = devicePixelRatio;
    const ends = [];
    ctx.save();
    ctx.font = `600 ${11 * scale}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    const style = getComputedStyle(document.body);
    const ink = printing ? "#000" : style.color;
    const page = printing ? "#fff" : style.backgroundColor;
    data.faults.forEach((fault, i) => {
      const x = Math.round(plot.valToPos(fault.at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.strokeStyle = ink;
      ctx.lineWidth = scale;
      ctx.setLineDash(fault.is_fault ? [6 * scale, 3 * scale] : [scale, 3 * scale]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const half = 8 * scale;
      let step = ends.findIndex(end => end < x - half);
      if (step < 0) step = ends.push(0) - 1;
      ends[step] = x + half;
      const y = bbox.top + half + step * (2 * half + 2 * scale);
      ctx.setLineDash([]);
      ctx.fillStyle = fault.is_fault ? ink : page;
      ctx.fillRect(x - half, y - half, 2 * half, 2 * half);
      if (!fault.is_fault) ctx.strokeRect(x - half, y - half, 2 * half, 2 * half);
      ctx.fillStyle = fault.is_fault ? page : ink;
      ctx.fillText(String(i + 1), x, y + scale);
    });
    ctx.restore();
  }

  function options(chart, kind, what, width) {
    const line_colour = printing ? "#ccc" : getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
    const ink = printing ? "#333" : getComputedStyle(document.documentElement).getPropertyValue("--quiet").trim();
    const axis = {stroke: ink, grid: {stroke: line_colour, width: 1}, ticks: {show: false}, font: "11px system-ui, sans-serif"};
    return {
      width, height,
      cursor: {y: false, sync: {key: "load"}},
      scales: {x: {time: false, range: [0, data.ran_s]}, y: {distr: what.log ? 3 : 1, range: range(kind)}},
      axes: [
        {...axis, size: 28, values: (_, splits) => splits.map(value => value + " s")},
        {...axis, size: 52, values: (_, splits) => splits.map(value =>
          value == null || (what.log && Math.log10(value) % 1 !== 0) ? "" : value.toLocaleString("en-US", {maximumFractionDigits: 3}))},
      ],
      series: [{label: "at", value: (_, value) => value == null ? "–" : value.toFixed(1) + " s"}, ...what.series],
      hooks: {draw: [drawFaults]},
    };
  }

  function draw() {
    for (const plot of drawn) plot.destroy();
    drawn = [];
    for (const chart of document.querySelectorAll(".chart[data-kind]")) {
      const side = data.sides[Number(chart.dataset.side)];
      const what = kinds[chart.dataset.kind](side);
      const width = printing ? 640 : chart.clientWidth;
      drawn.push(new uPlot(options(chart, chart.dataset.kind, what, width), [side.times, ...what.columns], chart));
    }
  }

  let wide = 0;
  addEventListener("resize", () => {
    if (!printing && innerWidth !== wide) draw();
    wide = innerWidth;
  });
  dark.addEventListener("change", draw);
  addEventListener("beforeprint", () => { printing = true; draw(); });
  addEventListener("afterprint", () => { printing = false; draw(); });
  draw();
})();
