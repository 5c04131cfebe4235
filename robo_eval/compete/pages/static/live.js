/* What asks for itself again is put in only where it has changed, and films begin to play. */
"use strict";

const shownBefore = new Map();

document.addEventListener("htmx:beforeSwap", (event) => {
  const { elt, xhr } = event.detail;
  if (xhr.status !== 200) {
    event.detail.shouldSwap = false; // what is there stays, until there is something better
    return;
  }
  const found = new DOMParser().parseFromString(xhr.responseText, "text/html").getElementById(elt.id);
  const text = found?.outerHTML ?? "";
  if (shownBefore.get(elt.id) === text) event.detail.shouldSwap = false;
  else shownBefore.set(elt.id, text);
});

function begin() {
  for (const root of document.querySelectorAll(".player:not([data-begun])")) {
    root.dataset.begun = "yes";
    new Player(root).load(root.querySelector("select.clip").value);
  }
}
document.addEventListener("htmx:afterSettle", begin);
begin();
