/* What is chosen on the page of a study becomes part of its pictures. */
"use strict";

const study = JSON.parse(document.getElementById("study").textContent);

const say = (id, text) => {
  document.getElementById(id).textContent = text;
};

/* The same height over a bin: a step line through both of its edges. */
const steps = (heights, first, last) => {
  const edges = heights.slice(first, last + 1);
  return {
    x: [...edges, 0].map((_, bin) => (first + bin) / heights.length),
    y: [...edges, edges[edges.length - 1]],
  };
};

function fillSizes({ data }, test) {
  const curve = study.curves[test];
  const [first, last] = study.seen[test];
  Object.assign(data[0], { x: study.pool[test], y: study.sizes });
  Object.assign(data[1], steps(curve, 0, curve.length - 1));
  Object.assign(data[2], steps(curve, first, last));
  Object.assign(data[3], steps(study.others[test], 0, curve.length - 1));
  say("sizes-words", study.curveWords[test]);
}

function fillMixture({ data, layout }, first, second) {
  const turned = Number(first) > Number(second);
  const key = turned ? `${second} ${first}` : `${first} ${second}`;
  const inner = study.mixed[key].map((row) => (turned ? [...row].reverse() : row));
  const low = study.alone[second];
  const high = study.alone[first];
  const p = [0, ...study.shares, 1];
  const reached = turned ? [...study.reached[key]].reverse() : study.reached[key];
  const line = (share) => share * reached[reached.length - 1] + (1 - share) * reached[0];
  Object.assign(data[0], { x: p, y: p.map(line) });
  Object.assign(data[1], { x: p, y: reached });
  Object.assign(data[2], {
    x: [...low.map(() => 0), ...inner.flatMap(() => study.shares), ...high.map(() => 1)],
    y: [...low, ...inner.flat(), ...high],
  });
  const options = document.getElementById("mixture-first").options;
  const name = options[first].text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  layout.xaxis.title.text = `share p of ${name.length > 40 ? "the first test" : name}`;
  say("mixture-words", study.pairWords[key]);
}

/* Every edge of the faces once, as one line with gaps. */
function edgesOf({ points, faces }) {
  const pairs = new Map();
  faces.forEach(([a, b, c]) => {
    [[a, b], [b, c], [a, c]].forEach(([u, v]) => pairs.set(u < v ? `${u} ${v}` : `${v} ${u}`, [u, v]));
  });
  const ends = [...pairs.values()].flatMap(([u, v]) => [points[u], points[v], [null, null, null]]);
  return columns(ends);
}

const columns = (points) =>
  Object.fromEntries([..."xyz"].map((axis, place) => [axis, points.map((point) => point[place])]));

function fillSpace({ data, layout }, turn, ...chosen) {
  chosen.forEach((key, place) => {
    const hull = study.hulls[key];
    if (!hull) return;
    const faces = Object.fromEntries(
      [..."ijk"].map((corner, at) => [corner, hull.faces.map((face) => face[at])]),
    );
    Object.assign(data[2 + 2 * place], columns(hull.points), faces);
    Object.assign(data[3 + 2 * place], edgesOf(hull));
  });
  const angle = (Number(turn) * Math.PI) / 180;
  const { eye } = layout.scene.camera;
  [eye.x, eye.y] = [eye.x * Math.cos(angle), eye.x * Math.sin(angle)];
  layout.uirevision = turn; // what was turned by hand stays until the slider is moved
}

function fillFlat({ data }, turn, ...chosen) {
  chosen.forEach((key, place) => {
    const ring = study.hulls[key]?.ring ?? [];
    const closed = ring.length ? [...ring, ring[0]] : [];
    Object.assign(data[2 + place], { x: closed.map(([x]) => x), y: closed.map(([, y]) => y) });
  });
}

/* Read by report.js: fills a figure in before it is drawn. */
window.fillers = {
  sizes: fillSizes,
  mixture: fillMixture,
  space: fillSpace,
  "space-flat": fillFlat,
};

/* Where a browser draws nothing in three dimensions, two are better than none. */
(() => {
  const place = document.querySelector('.chart[data-figure="space"]');
  if (!place || document.createElement("canvas").getContext("webgl")) return;
  place.dataset.figure = "space-flat";
  document.getElementById("turning").hidden = true;
  document.getElementById("flat-words").hidden = false;
})();
