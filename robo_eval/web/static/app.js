// What the pages do beyond htmx: nothing typed is lost, and times are in the zone of who reads them.
"use strict";

const user = document.body.dataset.user ?? "";
const toast = document.getElementById("offline");
const unreachable = toast.querySelector("[data-why]").textContent;

// Typing another one (`other_NAME`) chooses it, and choosing one (`NAME`) empties that field.
document.addEventListener("input", (event) => {
  const { name, form, value } = event.target;
  if (name?.startsWith("other_") && value)
    form.querySelectorAll(`[name=${name.slice(6)}]`).forEach((one) => (one.checked = false));
  const other = form?.elements[`other_${name}`];
  if (other) other.value = "";
});

// Times: pages are written in UTC, and shown in the zone of this browser. -------------------------

const two = (number) => String(number).padStart(2, "0");
const dayText = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
const clockText = (date) => [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
const zoneAt = (date) =>
  new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
    .formatToParts(date)
    .find((part) => part.type === "timeZoneName").value;

function showTime(element) {
  const then = new Date(element.dateTime);
  // Lists leave out seconds and zone: what is above them says the zone.
  const isShort = /^\S+ \d\d:\d\d$/.test(element.textContent);
  const clock = clockText(then);
  element.title = `${element.dateTime.replace("T", " ").replace("Z", "")} UTC`;
  element.textContent = isShort
    ? `${dayText(then)} ${clock.slice(0, 5)}`
    : `${dayText(then)} ${clock} ${zoneAt(then)}`;
}

/** A day or a month of this zone by its name, where that is what is known of a time. */
function showSpan(element) {
  const [begin, end] = [new Date(element.dataset.begin), new Date(element.dataset.end)];
  const after = (days, months) =>
    +new Date(begin.getFullYear(), begin.getMonth() + months, begin.getDate() + days) === +end;
  const isMidnight = clockText(begin) === "00:00:00";
  element.title = element.textContent;
  if (isMidnight && after(1, 0)) element.textContent = dayText(begin);
  else if (isMidnight && begin.getDate() === 1 && after(0, 1))
    element.textContent = dayText(begin).slice(0, 7);
}

// Which time a field stands for is kept beside it: where clocks are set back, one text is two times.
function setTime(field, then) {
  field.value = `${dayText(then)}T${clockText(then)}`;
  field.dataset.time = then.toISOString();
  field.dataset.shown = field.value;
}
const timeOf = (field) =>
  new Date(field.value === field.dataset.shown ? field.dataset.time : field.value);

/** A day with the distance from UTC at which it begins, or the day after it. */
function dayInZone(day, daysLater) {
  const [year, month, date] = day.split("-").map(Number);
  // Where clocks skip midnight, the day begins later than its name.
  const begin = new Date(year, month - 1, date + daysLater);
  const minutes = (Date.UTC(year, month - 1, date + daysLater) - begin) / 60_000;
  const [hours, rest] = [Math.trunc(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return minutes ? `${day}T00:00${minutes < 0 ? "-" : "+"}${two(hours)}:${two(rest)}` : day;
}

function showTimes() {
  document.querySelectorAll("time[datetime$=Z]:not([title])").forEach(showTime);
  document.querySelectorAll("[data-begin]:not([title])").forEach(showSpan);
  for (const one of document.querySelectorAll("[data-zone]"))
    one.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of document.querySelectorAll("input[type=datetime-local]:not([data-time])")) {
    const then = new Date(`${field.defaultValue}Z`);
    if (!Number.isNaN(then.getTime())) setTime(field, then);
  }
  // An address that somebody passed on names days with their zone.
  for (const field of document.querySelectorAll("input[type=date]"))
    if (field.defaultValue.length > 10) field.defaultValue = field.defaultValue.slice(0, 10);
}

// A day, a month or a time of a day that somebody typed without its zone.
const noZone = /^\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d)?)?)?$/;

document.addEventListener("formdata", ({ target: form, formData }) => {
  for (const field of form.elements) {
    if (!field.name || !field.value) continue;
    if (field.type === "datetime-local") formData.set(field.name, timeOf(field).toISOString());
    else if (field.name === "roughly" && field.value !== field.defaultValue && noZone.test(field.value))
      formData.set(field.name, `${field.value} ${Intl.DateTimeFormat().resolvedOptions().timeZone}`);
    else if (field.type === "date" && form.method === "get")
      formData.set(field.name, dayInZone(field.value, field.name === "until" ? 1 : 0));
  }
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
document.addEventListener("htmx:sendError", unsent(unreachable));
document.addEventListener("htmx:timeout", unsent(unreachable.replace("cannot be reached", "does not answer")));
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
  const then = timeOf(field);
  if (Number.isNaN(then.getTime())) return;
  setTime(field, new Date(then.getTime() - minutes * 60_000));
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-earlier]");
  const field = button?.form.querySelector("[type=datetime-local]");
  if (field) earlier(field, Number(button.dataset.earlier));
});

/** What was refused is read out and seen first. */
function focusProblem() {
  const problem = document.querySelector("#failed [role=alert], main [role=alert]");
  if (!problem) return false;
  problem.tabIndex = -1;
  const form = problem.parentElement.querySelector("form") ?? problem.closest("form");
  const field = problem.dataset.field && form?.elements[problem.dataset.field];
  const first = field?.length && !field.tagName ? field[0] : field;
  if (first && first.type !== "hidden") {
    // Beside what it is about; where a choice is asked for, under its question.
    const place = first.closest("fieldset.inline, fieldset:not(.questions)") ?? first.closest("label");
    const said = first.type === "radio" && place ? place.querySelector("legend") : first;
    said.insertAdjacentElement("afterend", problem);
    problem.id = "problem";
    first.setAttribute("aria-invalid", "true");
    first.setAttribute("aria-describedby", problem.id);
    for (let one = first.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    first.focus();
    return true;
  }
  problem.focus();
  return true;
}

function prepare() {
  showTimes();
  document.querySelectorAll("form[data-keep]").forEach(restore);
  if (!document.querySelector("main [autofocus]")) focusProblem();
}
document.addEventListener("htmx:afterSwap", showTimes);
// Not before: settling gives the focus to a field that asks for it.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target.id === "main" && !focusProblem())
    document.getElementById("main").focus({ preventScroll: true });
});
prepare();
