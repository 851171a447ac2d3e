"use strict";
// Reviews over time: what an account had against what was to be expected. Dragging chooses a window, and the reviews
// below follow it.
(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function draw(box) {
    if (!window.uPlot || box.dataset.drawn) return;
    const data = JSON.parse(box.dataset.activity);
    if (data.starts.length < 2) return;
    box.dataset.drawn = "yes";
    const small = Boolean(box.dataset.small);
    const label = box.querySelector("svg").getAttribute("aria-label");
    box.textContent = "";
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", label);
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
    const bars = uPlot.paths.bars({ size: [0.9, 40] });
    const chart = new uPlot({
      width: box.clientWidth, height: small ? 110 : 170, cursor: { y: false, drag: { x: true, y: false } },
      legend: { show: !small },
      scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] } },
      axes: [axis, { ...axis, size: 36 }],
      series: [
        { value: (_, v) => (v === null ? "" : new Date(v * 1000).toISOString().slice(0, 10)) },
        { label: "reviews", stroke: colour("core"), fill: colour("core"), paths: bars, points: { show: false } },
        { label: "expected", stroke: colour("market"), width: 1.5, points: { show: false } },
      ],
      hooks: { setScale: [(plot, key) => { if (key === "x" && !small) choose(plot, data); }] },
    }, [data.starts, data.own, data.expected], box);
    new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: small ? 110 : 170 })).observe(box);
  }

  let chosen = "";
  function choose(plot, data) {
    const reviews = document.getElementById("reviews");
    if (!reviews || !window.htmx) return;
    const low = Math.floor(plot.scales.x.min), high = Math.ceil(plot.scales.x.max);
    const all = low <= data.starts[0] && high >= data.starts[data.starts.length - 1];
    const url = reviews.dataset.url + (all ? "" : `&from=${low}&to=${high}`);
    if (chosen === "") { chosen = url; return; }
    if (url !== chosen) { chosen = url; htmx.ajax("GET", url, { target: reviews }); }
  }

  const drawAll = () => document.querySelectorAll("[data-activity]").forEach(draw);
  window.drawCharts = drawAll;
  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("htmx:afterSettle", drawAll);
})();
