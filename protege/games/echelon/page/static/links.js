// Where battles of runs and leagues are watched.

import { el } from "/page.js";

const view = (settings) => `#/echelon/battle?${new URLSearchParams(settings)}`;

/** A link to a run's battles, beside its charts. */
export function preview(run) {
  const link = el("a", { class: "button", href: view({ run: run.name }) }, "Watch its battles as they finish");
  return { element: link, close: () => {} };
}

export const recordingAddress = (run, file) => (file.endsWith(".rec") ? view({ run: run.name, file }) : null);

export const matchAddress = (league, _, match) =>
  match.recording ? view({ league: league.name, file: match.recording }) : null;
