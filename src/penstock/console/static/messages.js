"use strict";
// The page of messages: a search that goes on by itself, the live tail, and the import of a file.
// Texts of records come as escaped HTML of our own pages, or are set as text: never as HTML.
const SHOWN = 200;
const byId = (id) => document.getElementById(id);

// Asks for the rest of a search, piece by piece, until enough is shown; then only counts, if asked.
let searching = false;
async function goOn(counting) {
  searching = true;
  byId("stop").hidden = false;
  byId("count").hidden = true;
  while (searching) {
    const next = byId("progress").dataset.more;
    if (!next || (!counting && byId("rows").rows.length >= SHOWN)) break;
    const url = new URL(next, location.href);
    if (counting) url.searchParams.set("limit", "0");
    const response = await fetch(url);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const progress = page.getElementById("progress");
    if (!response.ok || !progress) {
      byId("followed").textContent = page.querySelector(".refused")?.textContent ?? "The search failed.";
      break;
    }
    byId("rows").append(...page.querySelectorAll("#rows tr"));
    byId("progress").replaceWith(progress);
  }
  searching = false;
  byId("stop").hidden = true;
  byId("count").hidden = !byId("progress").dataset.more;
}

// Follows the topic: pause closes the stream, resume opens it after the last event that was seen.
let tail = null, after = "";
function cell(part) {
  const found = document.createElement("td");
  const tag = Object.assign(document.createElement("span"), { className: "tag", textContent: part.format });
  if (part.format !== "null" && part.format !== "empty") {
    const text = typeof part.value === "string" ? part.value : JSON.stringify(part.value);
    found.append(Object.assign(document.createElement("code"), { textContent: text.slice(0, 300) }), " ");
  }
  found.append(tag);
  return found;
}
function row(each) {
  const found = Object.assign(document.createElement("tr"), { className: "new" });
  const link = document.createElement("a");
  link.href = `${byId("rows").dataset.base}/${each.partition}/${each.offset}`;
  link.textContent = each.offset;
  for (const text of [each.timestamp ?? "–", each.partition, link]) {
    const place = document.createElement("td");
    place.append(text);
    found.append(place);
  }
  found.append(cell(each.key), cell(each.value));
  return found;
}
function follow() {
  if (tail) {
    tail.close();
    tail = null;
    byId("follow").textContent = "Resume";
    byId("followed").textContent = "Paused.";
    return;
  }
  const url = new URL(byId("follow").dataset.tail, location.href);
  if (after) url.searchParams.set("after", after);
  tail = new EventSource(url);
  byId("follow").textContent = "Pause";
  byId("followed").textContent = "Waiting for new messages.";
  tail.onmessage = (event) => {
    after = event.lastEventId;
    const found = JSON.parse(event.data);
    if (!found) return;
    const rows = byId("rows");
    for (const each of found.messages) rows.prepend(row(each));
    while (rows.rows.length > 5 * SHOWN) rows.lastElementChild.remove();
    if (found.left_out) byId("followed").textContent = `${found.left_out} more came at once and are not shown.`;
  };
  tail.addEventListener("failed", (event) => {
    tail.close();
    tail = null;
    byId("follow").textContent = "Resume";
    byId("followed").textContent = JSON.parse(event.data);
  });
}

async function importFile(event) {
  event.preventDefault();
  const form = event.target, file = form.elements.file.files[0];
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  const url = `${form.dataset.import}?format=${form.elements.format.value}`;
  const response = await fetch(url, { method: "POST", body: file, headers: { ...headers, "Content-Type": "application/octet-stream" } });
  const found = await response.json();
  byId("imported").textContent = found.error ?? `${found.written} messages written.`;
}

document.addEventListener("DOMContentLoaded", () => {
  if (!byId("rows")) return;
  byId("stop").addEventListener("click", () => { searching = false; });
  byId("count").addEventListener("click", () => goOn(true));
  byId("follow").addEventListener("click", follow);
  byId("import")?.addEventListener("submit", importFile);
  const isPage = byId("rows").rows.length >= 50;
  if (byId("progress").dataset.more && !isPage) goOn(false);
  else byId("count").hidden = !byId("progress").dataset.more;
});
