/* Draws the charts, follows the theme and the width of the page, and offers the data. */
"use strict";

const WIDE = 700;
const PRINT_WIDTH = 690; // pixels of an A4 page between its margins
const dataOf = (id) => JSON.parse(document.getElementById(id).textContent);

function recolour(value, swaps) {
  if (typeof value === "string") return swaps[value] ?? value;
  if (Array.isArray(value)) return value.map((item) => recolour(item, swaps));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, recolour(v, swaps)]));
  }
  return value;
}

/* What is chosen in the fields that a chart depends on: a figure of its own for each choice, or one
   that `window.fillers` fills in. */
function choices(element) {
  const fields = (element.dataset.choices ?? "").split(" ").filter(Boolean);
  return fields.map((id) => document.getElementById(id).value);
}

class Charts {
  constructor() {
    this.figures = dataOf("figures");
    this.swaps = dataOf("dark-colours");
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.elements = [...document.querySelectorAll(".chart")];
    this.printing = false;
    this.drawn = new Map();
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  load(bytes) {
    const program = document.createElement("script");
    program.textContent = new TextDecoder().decode(bytes);
    document.head.append(program);
  }

  async start() {
    const bytes = await unpackElement("plotly");
    if (!window.Plotly) this.load(bytes);
    await this.draw();
    this.dark.addEventListener("change", () => this.draw());
    let waiting = 0;
    new ResizeObserver(() => {
      window.clearTimeout(waiting);
      waiting = window.setTimeout(() => this.draw(), 120);
    }).observe(document.querySelector("main"));
    document.addEventListener("input", () => this.draw());
  }

  print(on) {
    // Whoever prints as soon as the page is there does not wait.
    if (!window.Plotly) this.load(gunzipNow(packedElement("plotly")));
    this.printing = on;
    document.querySelectorAll("details.printed").forEach((part) => {
      if (on) part.dataset.was = part.open ? "open" : "";
      part.open = on || part.dataset.was === "open";
    });
    return this.draw();
  }

  draw() {
    return Promise.all(this.elements.map((element) => this.one(element)));
  }

  async one(element) {
    const width = this.printing ? PRINT_WIDTH : Math.floor(element.clientWidth);
    const dark = this.dark.matches && !this.printing;
    const chosen = choices(element);
    const state = [width, dark, ...chosen].join();
    if (!width || this.drawn.get(element) === state) return;
    this.drawn.set(element, state);
    const name = element.dataset.figure;
    const forms = this.figures[[name, ...chosen].join(" ")] ?? this.figures[name];
    const form = structuredClone(width >= WIDE || this.printing ? forms.wide : forms.narrow);
    window.fillers?.[name]?.(form, ...chosen);
    const { data, layout } = dark ? recolour(form, this.swaps) : form;
    const still = { displayModeBar: false, responsive: false, scrollZoom: false };
    await window.Plotly.react(element, data, { ...layout, width }, still);
    // A view box lets the print style sheet scale what is drawn, at whatever size it was drawn.
    const { height } = layout;
    element.style.setProperty("--ratio", `${width} / ${height}`);
    element.style.setProperty("--height", `${height}px`);
    element.querySelectorAll(".main-svg").forEach((svg) => {
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    });
    element.dataset.drawn = "yes";
  }
}

function offerDownloads() {
  document.querySelectorAll("a[data-packed]").forEach((link) => {
    link.addEventListener("click", async (event) => {
      if (link.dataset.done) return;
      event.preventDefault();
      const bytes = await unpackElement(link.dataset.packed);
      link.href = URL.createObjectURL(new Blob([bytes], { type: link.type }));
      link.dataset.done = "yes";
      link.click();
    });
  });
}

function pickPolicies() {
  const picker = document.getElementById("picker");
  if (!picker) return;
  const show = () => {
    document.querySelectorAll(".cells [data-policy]").forEach((cell) => {
      cell.classList.toggle("shown", cell.dataset.policy === picker.value);
    });
  };
  picker.addEventListener("change", show);
  show();
}

/* A link to a closed part opens it. */
function openLinked() {
  const part = document.getElementById(location.hash.slice(1));
  if (part instanceof HTMLDetailsElement) part.open = true;
}

async function start() {
  document.documentElement.classList.add("js");
  const charts = new Charts();
  offerDownloads();
  pickPolicies();
  openLinked();
  window.addEventListener("hashchange", openLinked);
  const player = document.querySelector(".player");
  if (player) {
    const shown = new Player(player);
    await shown.load(shown.select.value);
  }
  await charts.start();
  document.documentElement.dataset.ready = "yes";
}

start().catch((problem) => {
  const note = document.getElementById("script-problem");
  note.hidden = false;
  note.querySelector("span").textContent = String(problem);
  console.error(problem);
});
