/* Draws one episode from its trace: a small 3-D view, and the tilt that ends it over time. */
"use strict";

const ABSENT = -32768;

function readClip(bytes) {
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const clip = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const view = new DataView(bytes.buffer, 4 + length);
  const channels = view.byteLength / 2 / clip.ticks;
  const numbers = new Int16Array(view.byteLength / 2);
  for (let c = 0; c < channels; c += 1) {
    let sum = 0; // differences from tick to tick; the sum wraps around in 16 bits
    for (let t = 0; t < clip.ticks; t += 1) {
      const i = c * clip.ticks + t;
      sum = ((sum + view.getInt16(2 * i, true)) << 16) >> 16;
      numbers[i] = sum;
    }
  }
  const at = (channel, tick) => numbers[channel * clip.ticks + tick];
  clip.position = (frame, tick) => {
    const raw = [0, 1, 2].map((c) => at(3 * frame + c, tick));
    return raw.includes(ABSENT) ? null : raw.map((v) => v / 1000);
  };
  clip.turn = (frame, tick) => {
    const k = clip.turning.indexOf(frame);
    if (k < 0) return [0, 0, 0, 1];
    const first = 3 * clip.frames.length + 4 * k;
    return [0, 1, 2, 3].map((c) => at(first + c, tick) / 32767);
  };
  return clip;
}

const rotate = ([x, y, z, w], [a, b, c]) => {
  const u = 2 * (y * c - z * b);
  const v = 2 * (z * a - x * c);
  const s = 2 * (x * b - y * a);
  return [a + w * u + y * s - z * v, b + w * v + z * u - x * s, c + w * s + x * v - y * u];
};
const plus = (p, q) => [p[0] + q[0], p[1] + q[1], p[2] + q[2]];

/* Corners of a solid in its own frame; a cylinder is a ring at each end. */
function corners(solid) {
  if (solid.kind === "box") {
    const [x, y, z] = solid.size.map((edge) => edge / 2);
    return [-1, 1].flatMap((i) => [-1, 1].flatMap((j) => [-1, 1].map((k) => [i * x, j * y, k * z])));
  }
  const [radius, length] = solid.size;
  return [-length / 2, length / 2].flatMap((z) =>
    Array.from({ length: 24 }, (_, i) => {
      const angle = (i * Math.PI) / 12;
      return [radius * Math.cos(angle), radius * Math.sin(angle), z];
    }),
  );
}

/* Convex outline of points on the screen (monotone chain). */
function outline(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const cross = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const p of list) {
      while (chain.length > 1 && cross(chain[chain.length - 2], chain[chain.length - 1], p) <= 0) {
        chain.pop();
      }
      chain.push(p);
    }
    chain.pop();
    return chain;
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

class Player {
  constructor(root) {
    this.root = root;
    this.canvas = root.querySelector("canvas.scene");
    this.strip = root.querySelector("canvas.tilt");
    this.slider = root.querySelector("input[type=range]");
    this.button = root.querySelector("[data-do=play]");
    this.status = root.querySelector(".clock");
    this.select = root.querySelector("select.clip");
    this.view = root.querySelector("select.view");
    this.caption = root.querySelector(".clip-caption");
    this.azimuth = -0.95;
    this.elevation = 0.3;
    this.tick = 0;
    this.playing = false;
    this.clips = new Map();
    this.reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.listen();
  }

  listen() {
    this.button.addEventListener("click", () => this.toggle());
    this.slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(this.slider.value));
    });
    this.select.addEventListener("change", () => this.load(this.select.value));
    this.view.addEventListener("change", () => this.draw());
    this.root.querySelectorAll("[data-step]").forEach((button) => {
      button.addEventListener("click", () => this.step(Number(button.dataset.step)));
    });
    const stage = this.root.querySelector(".stage");
    stage.addEventListener("keydown", (event) => this.key(event));
    let last = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      this.orbit((event.clientX - last[0]) * -0.008, (event.clientY - last[1]) * 0.006);
      last = [event.clientX, event.clientY];
    });
    ["pointerup", "pointercancel"].forEach((name) =>
      this.canvas.addEventListener(name, () => {
        last = null;
      }),
    );
    new ResizeObserver(() => this.draw()).observe(stage);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  key(event) {
    const actions = {
      " ": () => this.toggle(),
      ArrowRight: () => this.step(event.shiftKey ? 10 : 1),
      ArrowLeft: () => this.step(event.shiftKey ? -10 : -1),
      Home: () => this.step(-Infinity),
      End: () => this.step(Infinity),
      a: () => this.orbit(-0.1, 0),
      d: () => this.orbit(0.1, 0),
      w: () => this.orbit(0, 0.08),
      s: () => this.orbit(0, -0.08),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  orbit(turn, rise) {
    this.azimuth += turn;
    this.elevation = Math.min(1.45, Math.max(0.04, this.elevation + rise));
    this.draw();
  }

  async load(id) {
    this.stop();
    if (!this.clips.has(id)) this.clips.set(id, readClip(await unpackElement(id)));
    this.clip = this.clips.get(id);
    this.slider.max = String(this.clip.ticks - 1);
    this.caption.textContent = this.clip.caption;
    this.go(0);
    this.root.dataset.ready = id;
  }

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  }

  play() {
    if (!this.clip) return;
    if (this.tick >= this.clip.ticks - 1) this.go(0);
    this.playing = true;
    this.button.textContent = "Pause";
    this.button.setAttribute("aria-pressed", "true");
    const start = performance.now() - this.clip.times_ms[this.tick];
    let shown = -Infinity;
    const frame = (now) => {
      if (!this.playing) return;
      const time = now - start;
      let tick = this.tick;
      while (tick < this.clip.ticks - 1 && this.clip.times_ms[tick + 1] <= time) tick += 1;
      // Where less motion is asked for, a still picture every half second takes its place.
      if (!this.reduced.matches || now - shown >= 500 || tick === this.clip.ticks - 1) {
        shown = now;
        this.go(tick);
      }
      if (tick >= this.clip.ticks - 1) this.stop();
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  stop() {
    this.playing = false;
    this.button.textContent = "Play";
    this.button.setAttribute("aria-pressed", "false");
  }

  step(by) {
    this.stop();
    if (this.clip) this.go(Math.min(this.clip.ticks - 1, Math.max(0, this.tick + by)));
  }

  go(tick) {
    this.tick = tick;
    const { clip } = this;
    const seconds = `${(clip.times_ms[tick] / 1000).toFixed(2)} s`;
    const total = `${(clip.times_ms[clip.ticks - 1] / 1000).toFixed(2)} s`;
    const tilt = clip.tilt
      ? `, roll ${clip.tilt.roll[tick]}°, pitch ${clip.tilt.pitch[tick]}°`
      : "";
    this.slider.value = String(tick);
    this.slider.setAttribute("aria-valuetext", `${seconds} of ${total}${tilt}`);
    this.status.textContent = `${seconds} / ${total}`;
    this.draw();
  }

  colours() {
    const style = getComputedStyle(this.root);
    return (name) => style.getPropertyValue(`--${name}`).trim();
  }

  fit(canvas) {
    const scale = window.devicePixelRatio || 1;
    const { width, height } = canvas.getBoundingClientRect();
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    return [pen, width, height];
  }

  camera(width, height) {
    const { clip } = this;
    const whole = this.view.value === "arena" && clip.arena;
    const follow = clip.position(0, this.tick) ?? [0, 0, 0];
    // Without walls around it a robot stands on a table.
    const [near, above] = clip.arena ? [5, 0.55] : [2.4, 0.3];
    const target = whole ? [0, 0, 4] : [follow[0], follow[1], follow[2] + above];
    const radius = whole ? 22 : near;
    const zoom = Math.min(width * (whole ? 1.15 : 1.5), height * (whole ? 1.5 : 1.9));
    const [ca, sa] = [Math.cos(this.azimuth), Math.sin(this.azimuth)];
    const [ce, se] = [Math.cos(this.elevation), Math.sin(this.elevation)];
    const eye = [target[0] + radius * ce * ca, target[1] + radius * ce * sa, target[2] + radius * se];
    return (p) => {
      const d = [p[0] - eye[0], p[1] - eye[1], p[2] - eye[2]];
      const depth = -(d[0] * ce * ca + d[1] * ce * sa + d[2] * se);
      const right = -d[0] * sa + d[1] * ca;
      const up = -d[0] * se * ca - d[1] * se * sa + d[2] * ce;
      const away = Math.max(depth, 0.2);
      return [width / 2 + (right * zoom) / away, height / 2 - (up * zoom) / away, depth, zoom / away];
    };
  }

  draw() {
    if (!this.clip || !this.canvas.getBoundingClientRect().width) return;
    const [pen, width, height] = this.fit(this.canvas);
    const project = this.camera(width, height);
    const colour = this.colours();
    this.ground(pen, project, colour);
    const things = this.clip.solids
      .map((solid) => this.place(solid, project))
      .filter((thing) => thing && thing.depth > 0.25)
      .sort((p, q) => q.depth - p.depth);
    things.forEach((thing) => this.shadow(pen, project, thing, colour));
    things.forEach((thing) => this.paint(pen, thing, colour));
    this.push(pen, project, colour);
    if (this.clip.tilt) this.drawTilt(colour);
    else this.strip.hidden = true;
  }

  line(pen, project, from, to) {
    const [p, q] = [project(from), project(to)];
    if (p[2] < 0.25 || q[2] < 0.25) return;
    pen.moveTo(p[0], p[1]);
    pen.lineTo(q[0], q[1]);
  }

  ground(pen, project, colour) {
    const { arena } = this.clip;
    const w = arena ? arena.half_width : 3;
    const floor = arena ? arena.floor : 0;
    pen.lineWidth = 1;
    pen.strokeStyle = colour("grid-line");
    pen.beginPath();
    for (let i = -Math.floor(w); i <= w; i += 1) {
      for (let j = -Math.floor(w); j < w; j += 1) {
        this.line(pen, project, [i, j, floor], [i, j + 1, floor]);
        this.line(pen, project, [j, i, floor], [j + 1, i, floor]);
      }
    }
    pen.stroke();
    if (!arena) return;
    pen.strokeStyle = colour("faint");
    pen.beginPath();
    const post = [[-w, -w], [w, -w], [w, w], [-w, w]];
    post.forEach(([x, y], i) => {
      const [u, v] = post[(i + 1) % 4];
      for (let k = 0; k < 8; k += 1) {
        const [a, b] = [k / 8, (k + 1) / 8];
        const at = (s) => [x + (u - x) * s, y + (v - y) * s];
        this.line(pen, project, [...at(a), floor], [...at(b), floor]);
        if (this.view.value === "arena") {
          this.line(pen, project, [...at(a), arena.ceiling], [...at(b), arena.ceiling]);
        }
      }
      this.line(pen, project, [x, y, floor], [x, y, arena.ceiling]);
    });
    pen.stroke();
  }

  place(solid, project) {
    const origin = this.clip.position(solid.frame, this.tick);
    if (!origin) return null;
    const turn = this.clip.turn(solid.frame, this.tick);
    const centre = plus(origin, rotate(turn, solid.offset));
    const [x, y, depth, scale] = project(centre);
    const role = this.clip.roles[solid.frame];
    if (solid.kind === "sphere") {
      return { role, centre, depth, disc: [x, y, solid.size[0] * scale], radius: solid.size[0] };
    }
    const world = corners(solid).map((corner) =>
      plus(origin, rotate(turn, plus(solid.offset, rotate(solid.turn, corner)))),
    );
    const points = world.map(project);
    if (points.some((p) => p[2] < 0.25)) return null;
    const half = world.length / 2;
    const cap = solid.kind === "cylinder" ? points.slice(half) : null;
    const radius = solid.kind === "cylinder" ? solid.size[0] : solid.size[0] / 2;
    // A body stands on its base: of two solids at nearly one depth the body is drawn later.
    return { role, centre, depth: depth - (role === "body" ? 0.6 : 0), points, cap, radius };
  }

  shadow(pen, project, thing, colour) {
    const floor = this.clip.arena ? this.clip.arena.floor : 0;
    if (thing.role === "body") return;
    const [cx, cy] = thing.centre;
    const ring = Array.from({ length: 20 }, (_, i) => {
      const angle = (i * Math.PI) / 10;
      return project([
        cx + thing.radius * Math.cos(angle),
        cy + thing.radius * Math.sin(angle),
        floor,
      ]);
    });
    if (ring.some((p) => p[2] < 0.25)) return;
    pen.fillStyle = colour("shadow");
    // What is high above the floor casts a faint shadow.
    pen.globalAlpha = 1 / (1 + Math.max(0, thing.centre[2] - floor));
    this.fill(pen, ring);
    pen.globalAlpha = 1;
  }

  fill(pen, points) {
    pen.beginPath();
    points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.fill();
  }

  paint(pen, thing, colour) {
    const base = colour(`scene-${thing.role}`);
    const light = colour(`scene-${thing.role}-light`);
    pen.lineWidth = 1;
    pen.strokeStyle = colour("scene-edge");
    if (thing.disc) {
      const [x, y, r] = thing.disc;
      const shade = pen.createRadialGradient(x - r * 0.35, y - r * 0.4, r * 0.1, x, y, r);
      shade.addColorStop(0, light);
      shade.addColorStop(1, base);
      pen.fillStyle = shade;
      pen.beginPath();
      pen.arc(x, y, Math.max(r, 1), 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
      return;
    }
    pen.fillStyle = base;
    this.fill(pen, outline(thing.points));
    pen.stroke();
    if (thing.cap) {
      pen.fillStyle = light;
      this.fill(pen, thing.cap);
      if (thing.role !== "body") pen.stroke();
    }
  }

  push(pen, project, colour) {
    const { pushes } = this.clip;
    if (!pushes || this.tick >= pushes.length) return;
    const [x, y] = pushes[this.tick];
    const base = this.clip.position(0, this.tick);
    if (!base || (!x && !y)) return;
    const from = project(plus(base, [x * 0.62, y * 0.62, 0]));
    const to = project(plus(base, [x * 1.15, y * 1.15, 0]));
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    pen.strokeStyle = colour("accent");
    pen.fillStyle = colour("accent");
    pen.lineWidth = 3;
    pen.beginPath();
    pen.moveTo(from[0], from[1]);
    pen.lineTo(to[0], to[1]);
    pen.stroke();
    this.fill(
      pen,
      [0, 2.5, -2.5].map((turn, i) => {
        const reach = i ? 9 : 6;
        return [to[0] + reach * Math.cos(angle + turn), to[1] + reach * Math.sin(angle + turn)];
      }),
    );
  }

  /* Roll and pitch over time, with the limits at which an episode ends. */
  drawTilt(colour) {
    this.strip.hidden = false;
    const [pen, width, height] = this.fit(this.strip);
    const { tilt, ticks } = this.clip;
    const { limit } = tilt;
    const top = 12;
    const left = 8; // half a thumb of the slider, so that the two line up
    const most = 1.25 * limit;
    const x = (tick) => left + (tick / Math.max(1, ticks - 1)) * (width - 2 * left);
    const y = (angle) =>
      height / 2 - (Math.max(-most, Math.min(most, angle)) / most) * (height / 2 - top / 2);
    pen.font = `11px ${getComputedStyle(this.root).fontFamily}`;
    pen.lineWidth = 1;
    [-limit, 0, limit].forEach((angle) => {
      pen.setLineDash(angle ? [4, 4] : []);
      pen.strokeStyle = colour(angle ? "warn" : "faint");
      pen.beginPath();
      pen.moveTo(left, y(angle));
      pen.lineTo(width - left, y(angle));
      pen.stroke();
    });
    [["roll", [], "policy-0"], ["pitch", [5, 3], "policy-1"]].forEach(([name, dash, tone]) => {
      pen.setLineDash(dash);
      pen.strokeStyle = colour(tone);
      pen.lineWidth = 1.75;
      pen.beginPath();
      tilt[name].forEach((angle, tick) => {
        if (angle !== null) pen.lineTo(x(tick), y(angle));
      });
      pen.stroke();
    });
    pen.setLineDash([]);
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x(this.tick), 2);
    pen.lineTo(x(this.tick), height - 2);
    pen.stroke();
  }
}
