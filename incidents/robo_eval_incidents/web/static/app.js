// What the pages do beyond htmx: nothing typed is lost, and times are set with one touch.
"use strict";

const user = document.body.dataset.user ?? "";
const toast = document.getElementById("offline");

// Typing another robot chooses it, and choosing a robot empties that field.
document.addEventListener("input", (event) => {
  const { name, form, value } = event.target;
  if (name === "other_robot" && value)
    form.querySelectorAll("[name=robot]").forEach((one) => (one.checked = false));
  if (name === "robot" && form?.elements.other_robot) form.elements.other_robot.value = "";
});

// Drafts: what was typed into a form that keeps it, in this tab alone. ------------------------

const draftKey = (form) =>
  `draft ${user} ${form.getAttribute("action")} ${form.elements.action_id?.value ?? ""}`;
const fieldsOf = (form) => [...form.elements].filter((one) => one.name && one.name !== "csrf");

function keep(form) {
  const values = fieldsOf(form)
    .filter((one) => !["radio", "checkbox"].includes(one.type) || one.checked)
    .map((one) => [one.name, one.value]);
  sessionStorage.setItem(draftKey(form), JSON.stringify(values));
}

function restore(form) {
  const kept = sessionStorage.getItem(draftKey(form));
  // A page that came back with what was wrong shows what was sent already.
  const details = form.closest("details");
  if (!kept || (details ?? form).querySelector("[role=alert]")) return;
  if (details) details.open = true;
  const values = new Map(JSON.parse(kept));
  for (const one of fieldsOf(form)) {
    if (one.type === "radio") one.checked = values.get(one.name) === one.value;
    else if (values.has(one.name)) one.value = values.get(one.name);
  }
}

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.matches("[data-keep]")) keep(form);
});

// Sending -------------------------------------------------------------------------------------

const unsent = (text) => () => {
  toast.querySelector("[data-why]").textContent = text;
  toast.hidden = false;
};

document.addEventListener("htmx:beforeRequest", () => (toast.hidden = true));
document.addEventListener("htmx:sendError", unsent("The incident log cannot be reached."));
document.addEventListener("htmx:timeout", unsent("The incident log does not answer."));
document.addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr } = event.detail;
  const isRecorded = xhr.status >= 200 && xhr.status < 300;
  if (isRecorded && elt.matches("[data-keep]")) sessionStorage.removeItem(draftKey(elt));
});
document.addEventListener("submit", (event) => {
  if (event.target.matches(".leave")) sessionStorage.clear();
});

// Forms ---------------------------------------------------------------------------------------

function earlier(field, minutes) {
  const [day, clock] = field.value.split("T");
  const [year, month, date] = day.split("-").map(Number);
  const [hour, minute, second = 0] = clock.split(":").map(Number);
  // As UTC, so that no change of summer time of this browser comes in between.
  const then = new Date(Date.UTC(year, month - 1, date, hour, minute - minutes, second));
  field.value = then.toISOString().slice(0, 19);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-earlier]");
  if (button) earlier(button.form.elements.happened, Number(button.dataset.earlier));
});

function prepare() {
  document.querySelectorAll("form[data-keep]").forEach(restore);
  // What was refused is read out and seen first.
  document.querySelector("#failed, main [role=alert]")?.scrollIntoView({ block: "nearest" });
}
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "main") document.getElementById("main").focus({ preventScroll: true });
});
prepare();
