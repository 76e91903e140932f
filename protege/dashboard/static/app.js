// The page: which view an address means, the feed of news that all views share, theme and token.

import { loadGames, tabs } from "./games.js";
import { LeagueView } from "./league.js";
import { Line, ask, el, part, toast, trust } from "./page.js";
import { RunsView } from "./runs.js";

const main = part("main", HTMLElement);
const SILENCE_MS = 13_000; // the server speaks every four seconds

/** News of followed runs over one socket. After a break it goes on where it was. */
class Feed {
  /** @type {import("./followed.js").FollowedRun[]} */
  runs = [];
  viewers = 0;
  /** @type {(news: any) => void} */
  heard = () => {};

  constructor() {
    this.line = new Line("/api/feed", {
      patience: SILENCE_MS,
      opened: () => this.opened(),
      heard: (text) => {
        const news = JSON.parse(text);
        if (news.viewers !== undefined) this.viewers = news.viewers;
        this.heard(news);
      },
      lost: () => connection("lost"),
    });
  }

  opened() {
    connection("on");
    trust.check().catch(() => {});
    this.ask();
  }

  watch(runs) {
    this.runs = runs;
    this.ask();
  }

  ask() {
    this.line.say({ watch: Object.fromEntries(this.runs.map((run) => [run.name, run.place])) });
  }
}

function connection(state) {
  const before = document.body.dataset.connection;
  document.body.dataset.connection = state;
  const chip = part("connection", HTMLElement);
  chip.textContent = state === "on" ? "live" : "connection lost, trying again";
  if (before === "lost" && state === "on") toast("Connected again");
}

// --- views -----------------------------------------------------------------------------------------------------------

let about = { games: [], controls: [] };
/** @type {any} */
let view = null;
const feed = new Feed();
feed.heard = (news) => view?.follow?.(news);

/** An address behind the #: a path, settings, and perhaps the token, which is taken out of sight at once. */
function readAddress() {
  const hash = location.hash.slice(1);
  const [path, query = ""] = hash.startsWith("/") ? hash.split("?", 2) : ["/", hash];
  const settings = new URLSearchParams(query);
  const token = settings.get("token");
  if (token) {
    settings.delete("token");
    history.replaceState(null, "", `#${path}${settings.size ? `?${settings}` : ""}`);
    trust
      .use(token)
      .then(() => trust.ok || toast("That token is not the one of this server", "bad"))
      .catch(() => {});
  }
  return { parts: path.split("/").filter(Boolean).map(decodeURIComponent), settings };
}

function go() {
  const { parts, settings } = readAddress();
  const [name = "run"] = parts;
  const tab = tabs().find((one) => one.game === name && one.name === parts[1]);
  for (const link of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("nav a"))) {
    if (link.dataset.view === (tab ? `${tab.game}/${tab.name}` : name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const title = tab?.title ?? (name === "league" ? "League" : (parts[1] ?? "Training"));
  document.title = `${title} · Protege`;
  if (name === "run") {
    const others = (settings.get("compare") ?? "").split(",").filter(Boolean).map(decodeURIComponent);
    if (!(view instanceof RunsView)) show(new RunsView(feed, about));
    view.open(parts[1] ? [...new Set([parts[1], ...others])] : []);
  } else if (tab) {
    showTab(tab, Object.fromEntries(settings));
  } else if (name === "league") {
    show(new LeagueView(parts[1], Object.fromEntries(settings)));
  } else {
    location.hash = "/";
  }
}

/** A game's own view. It may need large libraries, so it is loaded when somebody asks for it. */
async function showTab(tab, settings) {
  const asked = location.hash;
  const { default: View } = await import(tab.module);
  if (location.hash === asked) show(new View(settings));
}

/** Links to the games' tabs, between those that are always there. */
function buildNavigation() {
  const last = /** @type {HTMLElement} */ (document.querySelector("nav [data-view=league]"));
  for (const { address, game, name, title } of tabs()) {
    last.before(el("a", { href: address, "data-view": `${game}/${name}` }, title));
  }
}

function show(next) {
  view?.destroy();
  view = next;
  main.replaceChildren(next.element);
}

// --- theme and token -------------------------------------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
const themeButton = part("theme", HTMLElement);

function theme() {
  const chosen = localStorage.getItem("protege-theme") ?? (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = chosen;
  themeButton.textContent = chosen === "dark" ? "☀" : "☾";
  document.dispatchEvent(new Event("theme"));
}

themeButton.addEventListener("click", () => {
  localStorage.setItem("protege-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme();
});
dark.addEventListener("change", theme);
theme();

const trustButton = part("trust", HTMLElement);
const tokenDialog = part("token-dialog", HTMLDialogElement);

function showTrust() {
  trustButton.textContent = trust.ok ? "can steer" : "view only";
  trustButton.title = trust.ok ? "this window has the token" : "steering needs the token";
  trustButton.classList.toggle("good", trust.ok);
}

trustButton.addEventListener("click", () => tokenDialog.showModal());
tokenDialog.addEventListener("close", async () => {
  const input = part("token-input", HTMLInputElement);
  if (tokenDialog.returnValue === "use" && input.value.trim()) {
    await trust.use(input.value.replace(/^.*token=/, ""));
    toast(trust.ok ? "This window can steer now" : "That token is not the one of this server", trust.ok ? "" : "bad");
  }
  input.value = "";
});
document.addEventListener("trust", showTrust);
showTrust();

readAddress(); // before anything is waited for, so that the token is not in sight
about = await ask("/api/about").catch(() => about);
await loadGames(about.games);
buildNavigation();
addEventListener("hashchange", go);
go();
