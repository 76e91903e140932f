// What every view needs: elements, requests, sockets, and the token that allows steering.

/**
 * An element: properties (on… are listeners, data-… are attributes) and children; null ones are left out.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} properties
 * @param {any[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, properties = {}, ...children) {
  const made = /** @type {any} */ (document.createElement(tag));
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && !name.includes("-") && name !== "list") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Set an element's text in place: what changes with every picture must leave no rubbish behind. */
export function write(element, text) {
  const shown = String(text);
  const only = element.firstChild;
  if (!only) element.textContent = shown;
  else if (only.data !== shown) only.data = shown;
}

/**
 * An element that index.html has.
 *
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 */
export function part(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`index.html has no ${kind.name} with id ${id}`);
  return found;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, properties = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The answer to a request as JSON; a refusal becomes an error that says why. */
export async function ask(path, options = {}) {
  const answer = await fetch(path, options);
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error ?? `the server answered ${answer.status}`);
  return found;
}

export const address = (...parts) => `/api/${parts.map(encodeURIComponent).join("/")}`;

/** Where a live view of a game is heard. */
export const liveAddress = (game, kind, settings = {}) =>
  `${address("games", game, kind)}?${new URLSearchParams(settings)}`;

export function socketAddress(path) {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
}

export function field(label, control) {
  return el("label", { class: "field" }, el("span", {}, label), control);
}

export function choice(options, value, change) {
  return el(
    "select",
    { onchange: (event) => change(event.target.value) },
    options.map(([key, text]) => el("option", { value: key, selected: String(key) === String(value) }, text)),
  );
}

/** A line that appears for a few seconds. */
export function toast(text, kind = "") {
  const line = el("p", { class: `toast ${kind}` }, text);
  const place = part("toasts", HTMLElement);
  while (place.children.length > 2) place.children[0].remove();
  place.append(line);
  setTimeout(() => line.remove(), 6000);
}

// --- the token: kept for this tab alone, sent only with what it is needed for ----------------------------------------

export const trust = {
  ok: false,

  get token() {
    return sessionStorage.getItem("protege-token") ?? "";
  },

  headers() {
    return { authorization: `Bearer ${this.token}` };
  },

  async use(token) {
    sessionStorage.setItem("protege-token", token.trim());
    await this.check();
  },

  async check() {
    const before = this.ok;
    this.ok = this.token !== "" && (await ask("/api/token", { headers: this.headers() })).ok;
    if (this.ok !== before) document.dispatchEvent(new Event("trust"));
  },
};

export const HOPELESS = 4000; // how the server closes what it cannot open as things are

/** A socket that comes back by itself. `opened` gets it each time; `heard` its messages; `lost` when it goes. */
export class Line {
  /** @type {WebSocket | null} */
  socket = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  deadline;
  wait = 500; // milliseconds until the next try

  /**
   * @param {string} path
   * @param {object} told
   * @param {(line: Line) => void} [told.opened]
   * @param {(message: any) => void} told.heard
   * @param {(code: number) => void} [told.lost]
   * @param {number} [told.patience] milliseconds
   */
  constructor(path, { opened = () => {}, heard, lost = () => {}, patience = 0 }) {
    this.path = path;
    this.opened = opened;
    this.heard = heard;
    this.lost = lost;
    this.patience = patience;
    this.open();
  }

  open() {
    const socket = new WebSocket(socketAddress(this.path));
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.wait = 500;
      this.expect();
      this.opened(this);
    };
    socket.onmessage = (message) => {
      if (this.socket !== socket) return;
      this.expect();
      this.heard(message.data);
    };
    socket.onclose = (end) => {
      if (this.socket === socket) this.fall(end.code);
    };
  }

  /** The connection is gone; the next one is tried after a while, and soon if it had been good for long. */
  fall(code) {
    const { socket } = this;
    this.socket = null;
    clearTimeout(this.deadline);
    socket?.close();
    this.lost(code);
    if (code === HOPELESS) this.wait = 4000;
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(5000, this.wait * 1.6);
  }

  /** A connection that is silent for longer than its patience is as good as gone. */
  expect() {
    clearTimeout(this.deadline);
    if (this.patience) this.deadline = setTimeout(() => this.fall(0), this.patience);
  }

  say(words) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(words));
  }

  close() {
    const { socket } = this;
    this.socket = null;
    clearTimeout(this.timer);
    clearTimeout(this.deadline);
    // Closing while it still connects would be an error in the browser's console.
    if (socket?.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket?.close();
  }
}
