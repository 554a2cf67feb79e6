"use strict";
// 12000000 takes the room of 12M.
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
function shortened(value) { return value === null ? "" : short.format(value); }
// Draws the charts of a page: elements with data-chart, which has uPlot's columns as JSON.
function drawCharts(root) {
  const colours = getComputedStyle(document.documentElement);
  for (const place of root.querySelectorAll("[data-chart]")) {
    const axis = { stroke: colours.getPropertyValue("--dim"), grid: { stroke: colours.getPropertyValue("--line"), width: 1 } };
    const options = {
      width: place.clientWidth, height: 180, legend: { show: false }, axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map(shortened) }],
      // A single point would have years around it.
      scales: { x: { range: (_, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_, low, high) => [0, Math.max(high, 1)] } },
      series: [{}, { label: place.dataset.label, stroke: colours.getPropertyValue("--link"), width: 2 }],
    };
    place.replaceChildren();
    new uPlot(options, JSON.parse(place.dataset.chart), place);
  }
}
document.addEventListener("DOMContentLoaded", () => drawCharts(document));
document.addEventListener("htmx:afterSettle", () => drawCharts(document));
window.addEventListener("resize", () => drawCharts(document));
// A form shows why it was refused, and a page that its subject is gone, if the console says so.
function isGone(detail) {
  return detail.target?.id === "main" && detail.xhr.status === 404 && detail.xhr.responseText.includes('id="main"');
}
document.addEventListener("htmx:beforeSwap", (event) => {
  if (isGone(event.detail) || event.detail.target.matches(".result")) event.detail.shouldSwap = true;
});
// A page that nobody answers for stays as it was, and says so until it is answered for.
function sayOld(event) {
  const main = event.detail.target;
  if (main?.id !== "main" || isGone(event.detail) || main.querySelector(".old")) return;
  const told = document.createElement("p");
  told.className = "problem error old";
  told.setAttribute("role", "alert");
  told.textContent = "The console does not answer: what follows is old.";
  main.prepend(told);
}
document.addEventListener("htmx:sendError", sayOld);
document.addEventListener("htmx:responseError", sayOld);
// Keys: / goes to the search, g and a letter to a page, ? tells the letters. Not while one types.
let waitsForPage = false;
function isTyping(target) { return target.matches("input, textarea, select, [contenteditable]"); }
function showKeys() {
  const dialog = document.querySelector("#keys"), list = dialog.querySelector("dl");
  const rows = [["/", "Search"], ["?", "These keys"]];
  for (const each of document.querySelectorAll("nav [data-key]")) rows.push([`g ${each.dataset.key}`, each.textContent]);
  list.replaceChildren(...rows.flatMap(([key, text]) => {
    const term = document.createElement("dt"), meaning = document.createElement("dd");
    term.textContent = key;
    meaning.textContent = text;
    return [term, meaning];
  }));
  dialog.showModal();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const waited = waitsForPage;
  waitsForPage = false;
  if (waited) {
    document.querySelector(`nav [data-key="${CSS.escape(event.key)}"]`)?.click();
  } else if (event.key === "g") {
    waitsForPage = true;
  } else if (event.key === "?") {
    showKeys();
  } else if (event.key === "/") {
    const search = document.querySelector("input[type=search], input[name=text]");
    if (search === null) return;
    event.preventDefault();
    search.focus();
  }
});
