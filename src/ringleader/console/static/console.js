"use strict";
// Keys, the queue, lists and the line at the top that follows the model.
(() => {
  const find = (selector, within = document) => within.querySelector(selector);
  const page = document.body.dataset.page;
  const decided = [];          // what this page decided, the last one first to be taken back; id once it is saved

  // -- banners -----------------------------------------------------------------------------------

  function banner(id, kind, text, link) {
    const box = find("#banners");
    let line = document.getElementById(id);
    if (!text) { if (line) line.remove(); return; }
    if (!line) {
      line = document.createElement("p");
      line.id = id;
      box.append(line);
    }
    line.className = `banner banner-${kind}`;
    line.textContent = text;
    if (link) {
      const anchor = document.createElement("a");
      anchor.href = link.url;
      anchor.textContent = link.text;
      line.append(" ", anchor);
    }
  }

  const shown = (text) => (text.length > 60 ? text.slice(0, 59) + "…" : text);

  outbox.listen((event) => {
    if (event.kind === "waiting" && event.count) {
      const what = event.count === 1 ? "1 decision is" : `${event.count} decisions are`;
      banner("unsaved", "bad", `Not saved: ${what} kept in this browser and sent again. ${event.reason}`);
    } else if (event.kind === "saved") {
      const own = decided.find((entry) => entry.key === event.entry.key);
      if (own) own.id = event.decision.id;
      if (event.entry.reverts) look(event.entry);
      else mark(event.entry, event.entry.verdict, event.decision.id);
      if (event.entry.reverts && page === "queue" && [asked, cardCode()].includes(event.entry.code)) show(event.entry.code);
    } else if (event.kind === "conflict" || event.kind === "refused") {
      const place = decided.findIndex((entry) => entry.key === event.entry.key);
      if (place >= 0) decided.splice(place, 1);
    }
    if (event.kind === "conflict") {
      const since = (event.problem.since || []).filter((e) => e.verdict !== "revoke").pop();
      const who = since ? `${shown(since.who)} said ${since.verdict}` : "it was taken back";
      banner("conflict", "warn", `Decided meanwhile: ${shown(event.entry.entity || "this account")}: ${who}. Your ${event.entry.verdict || "undo"} was not taken.`,
        event.entry.url && { url: event.entry.url, text: "Look again" });
    } else if (event.kind === "refused") {
      banner("refused", "bad", `Not saved: ${event.problem.detail || "the console refused it"}.`);
    } else if (event.kind === "empty") {
      banner("unsaved", "", "");
      const what = event.elsewhere === 1 ? "1 decision" : `${event.elsewhere} decisions`;
      banner("elsewhere", "warn", event.elsewhere && `${what} on another model, which was served here before, could not be saved. This browser keeps them until that model is served at this address again.`);
    }
  });

  // -- the line at the top -----------------------------------------------------------------------

  function state(name) { find("#dot").className = `dot dot-${name}`; }

  // A browser opens six connections to one server. So one tab alone listens, and tells the others.
  const channel = "BroadcastChannel" in window && navigator.locks ? new BroadcastChannel("ringleader-events") : null;
  const share = (event) => { heard(event); if (channel) channel.postMessage(event); };
  function listen() {
    let gone = null;
    const stream = new EventSource("/events");
    stream.onopen = () => { clearTimeout(gone); gone = null; share({ kind: "open" }); };
    stream.onmessage = (message) => share(JSON.parse(message.data));
    stream.onerror = () => {
      gone = gone || setTimeout(tellGone, 1500);
      if (stream.readyState === EventSource.CLOSED) { clearTimeout(gone); tellGone(); setTimeout(listen, 3000); }
    };
  }
  async function tellGone() {
    const answer = await fetch("/api/v1/status").catch(() => null);
    if (!answer || !answer.ok) share({ kind: "gone", ended: Boolean(answer) && answer.status === 401 });
  }
  function follow() {
    if (!channel) { listen(); return; }
    channel.onmessage = (message) => heard(message.data);
    navigator.locks.request("ringleader-events", () => new Promise(listen));
  }

  function heard(event) {
    if (event.kind === "open") { banner("gone", "", ""); outbox.flush(); }
    if (event.kind === "gone") {
      const text = event.ended ? "The session has ended: open the link that ringleader serve printed in this browser." : "The console does not answer.";
      banner("gone", "bad", `${text} What you decide is kept in this browser until it is saved.`);
    }
    if (event.kind === "refit") state(event.state);
    if (event.kind === "refit" && event.state === "failed") {
      banner("failed", "bad", `The last refit failed, so the ranking is older than the decisions: ${event.detail}`);
    }
    if (event.kind === "run" || event.kind === "hello") {
      find("#sentence").textContent = event.sentence;
      find(".strip-right a").textContent = `run ${event.run}`;
    }
    if (event.kind === "run") {
      banner("failed", "", "");
      if (page === "queue") soon(prefetch);
      if (page === "live") soon(refresh);
    }
    if (event.kind === "hello") catchUp(event.last);
    if (event.kind === "decision") {
      mark(event, event.verdict === "revoke" ? event.holds || "" : event.verdict, event.id);
      seen = Math.max(seen, event.id);
    }
  }

  // What was decided while nobody listened: between two streams, or two tabs of which one closed.
  let seen = Number(document.body.dataset.last);
  async function catchUp(last) {
    if (last <= seen) return;
    const answer = await fetch("/api/v1/decisions?limit=200").catch(() => null);
    if (!answer || !answer.ok) return;
    const missed = (await answer.json()).items.filter((event) => event.id > seen).reverse();
    for (const event of missed) {
      if (event.verdict === "revoke") { await look(event); seen = Math.max(seen, event.id); }
      else heard({ kind: "decision", ...event });
    }
  }

  // What holds of an account after something was taken back: an older decision, or none.
  async function look({ mode, entity, target }) {
    if (!entity) return;
    const answer = await fetch(`/api/v1/account?${new URLSearchParams({ mode, entity, target })}`).catch(() => null);
    if (!answer || !answer.ok) return;
    const head = Number(answer.headers.get("ETag").replaceAll('"', ""));
    mark({ mode, entity, target }, (await answer.json()).verdict || "", head);
  }

  // What follows a new ranking: not of all pages at once, and not more often than every few seconds.
  let planned = null;
  let latest = -Infinity;
  function soon(call) {
    if (planned || document.hidden) return;
    const pause = Math.max(latest + 3000 - performance.now(), 0) + 500 * Math.random();
    planned = setTimeout(() => { planned = null; latest = performance.now(); call(); }, pause);
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden && page === "live") soon(refresh); });

  // The page as it is now in place of the one that is shown. What changed is still said since the look that opened it.
  async function refresh() {
    const { since } = document.body.dataset;
    const answer = await fetch(since ? `${location.pathname}?since=${encodeURIComponent(since)}` : location.href).catch(() => null);
    if (!answer || !answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = find("#main");
    if (!main.contains(document.activeElement)) main.replaceChildren(...find("#main", fresh).childNodes);
  }

  // Rows, forms and cards that show an account follow what is decided of it here or elsewhere.
  function mark(entry, verdict, head) {
    for (const row of document.querySelectorAll("[data-entity]")) {
      const same = row.dataset.entity === entry.entity && row.dataset.mode === entry.mode && row.dataset.target === entry.target;
      if (!same) continue;
      row.dataset.head = head;
      const hidden = find("input[name=head]", row);
      if (hidden) hidden.value = head;
      const cell = find(".known", row) || (row.matches("form") && find(".known"));
      if (cell) {
        cell.textContent = "";
        if (verdict) {
          const pill = document.createElement("span");
          pill.className = `pill pill-${verdict}`;
          pill.textContent = verdict;
          cell.append(pill);
        }
      }
      if (page === "account") { clearTimeout(retold); retold = setTimeout(retell, 150); }
    }
  }

  // The decisions on an account as they are now.
  let retold = null;
  async function retell() {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer || !answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const events = find("#account-events");
    if (!events.contains(document.activeElement)) events.replaceChildren(...find("#account-events", fresh).childNodes);
  }

  // -- deciding ----------------------------------------------------------------------------------

  function entryOf(holder, verdict) {
    const { mode, entity, target, head, code } = holder.dataset;
    const note = find("textarea[name=note]", holder);
    const { run } = holder.closest("[data-run]").dataset;
    return { mode, entity, target, head: Number(head), code: Number(code), verdict, run, note: note ? note.value.trim() : "", url: urlOf(holder) };
  }
  const urlOf = (holder) => holder.dataset.url || (holder.closest("[data-url]") || { dataset: {} }).dataset.url || location.pathname;

  function decide(holder, verdict) {
    banner("conflict", "", "");
    banner("refused", "", "");
    const entry = outbox.add(entryOf(holder, verdict));
    decided.push(entry);
    const note = find("textarea[name=note]", holder);
    if (note) note.value = "";
    if (page === "queue") next(entry);
    else if (page === "list") move(1);
    else mark(entry, verdict, entry.head);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-decide]") && event.submitter) {
      event.preventDefault();
      decide(form, event.submitter.value);
    } else if (form.matches("[data-undo]") && page === "queue") {
      event.preventDefault();
      outbox.add({ reverts: Number(form.dataset.undo) });
    }
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("tr[data-entity] [data-verdict]");
    if (!button) return;
    banner("conflict", "", "");
    banner("refused", "", "");
    decided.push(outbox.add(entryOf(button.closest("tr"), button.dataset.verdict)));
  });

  function takeBack({ id, mode, entity, target, code, url }) {
    outbox.add({ reverts: id, mode, entity, target, code, url });
  }

  // Another tab sent it.
  async function takeBackSaved(last) {
    const answer = await fetch("/api/v1/decisions?limit=200").catch(() => null);
    const own = answer && answer.ok && (await answer.json()).items.find((event) => event.key === last.key);
    if (own) takeBack({ ...last, id: own.id });
    else banner("refused", "bad", "Not taken back: the console does not answer. The decisions page takes back any.");
  }

  function undo() {
    const last = decided.pop();
    if (!last) { banner("refused", "info", "There is nothing of this page to take back; the decisions page takes back any."); return; }
    if (last.id) takeBack(last); else if (!outbox.undo(last.key)) takeBackSaved(last);
    if (page === "queue") { passed = passed.filter((code) => code !== last.code); show(last.code); }
    else mark(last, "", last.head);
  }

  // -- the queue ---------------------------------------------------------------------------------

  let passed = [];             // codes that were shown on this page, in their order
  let at = -1;                 // where we are among them; the end is the newest
  let ready = null;            // the card behind the one that is shown, fetched before it is wanted
  const box = page === "queue" ? find("#card") : null;
  const cardCode = () => { const card = find(".card", box); return card ? Number(card.dataset.code) : null; };
  const cardUrl = (extra) => `${box.dataset.queue}&${extra}`;

  async function fetchCard(url) {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  }

  function put(html) {
    box.innerHTML = html;
    htmx.process(box);
    drawCharts();
    const code = cardCode();
    if (code !== null && !passed.includes(code)) { passed.push(code); passed = passed.slice(-300); at = passed.length - 1; }
    window.scrollTo(0, 0);
    prefetch();
  }

  let wanted = 0;
  function prefetch() {
    const mine = ++wanted;
    ready = fetchCard(cardUrl(`not=${passed.join(",")}`)).then((html) => (mine === wanted ? html : null)).catch(() => null);
  }

  let turn = 0;                // what was asked for last is shown, whichever answer comes last
  let asked = null;            // the code of the card that was asked for last, where it was one
  async function next() {
    const mine = ++turn;
    asked = null;
    let html = ready ? await ready : null;
    if (html === null) {
      try { html = await fetchCard(cardUrl(`not=${passed.join(",")}`)); } catch { busy(); return; }
    }
    if (mine !== turn) return;
    at = passed.length - 1;
    put(html);
  }

  async function show(code) {
    const mine = ++turn;
    asked = code;
    let html;
    try { html = await fetchCard(cardUrl(`at=${code}`)); } catch { busy(); return; }
    if (mine !== turn) return;
    put(html);
    const place = passed.indexOf(code);
    if (place >= 0) at = place;
  }

  function busy() {
    const card = find(".card", box);
    if (card) card.classList.add("stale");
  }

  function step(by) {
    if (by > 0 && at >= passed.length - 1) { next(); return; }
    const code = passed[at + by];
    if (code !== undefined) { at += by; show(code); }
  }

  if (box) {
    box.addEventListener("click", (event) => {
      const button = event.target.closest("[data-step]");
      if (!button) return;
      event.preventDefault();
      if (button.dataset.step === "undo") undo();
      else step(button.dataset.step === "next" ? 1 : -1);
    });
    const first = cardCode();
    if (first !== null) { passed = [first]; at = 0; }
    prefetch();
  }

  // -- lists -------------------------------------------------------------------------------------

  const rows = () => Array.from(document.querySelectorAll("tr[data-row]"));
  function move(by) {
    const all = rows();
    if (!all.length) return;
    const old = all.findIndex((row) => row.classList.contains("selected"));
    const to = Math.min(Math.max(old + by, 0), all.length - 1);
    all.forEach((row, i) => row.classList.toggle("selected", i === to));
    const link = find("a", all[to]);
    if (link) link.focus({ preventScroll: true });
    all[to].scrollIntoView({ block: "nearest" });
    if (to === all.length - 1) { const more = find("tr.more a"); if (more) more.click(); }
  }

  // -- keys --------------------------------------------------------------------------------------

  const VERDICTS = { b: "bad", g: "good", u: "unsure" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, textarea, select");
    if (typing) {
      if (event.key === "Escape") { event.target.blur(); event.preventDefault(); }
      return;
    }
    if (find("dialog[open]")) return;
    const form = find("form[data-decide]");
    const row = find("tr.selected[data-entity]");
    const key = event.key;
    let done = true;
    if (VERDICTS[key] && (row || form)) { if (!event.repeat) decide(row || form, VERDICTS[key]); }
    else if (key === "z") { if (!event.repeat) undo(); }
    else if (key === "j") { if (box) step(1); else move(1); }
    else if (key === "k") { if (box) step(-1); else move(-1); }
    else if (key === "Enter" && box && event.target === document.body) { const card = find(".card", box); if (card) location.href = card.dataset.url; }
    else if (key === "n" && form) { const note = find("textarea", form); if (note) note.focus(); }
    else if (key === "/") find("#search").focus();
    else if (key === "?") find("#keys").showModal();
    else done = false;
    if (done) event.preventDefault();
  });

  // -- when htmx gets no answer ------------------------------------------------------------------

  document.addEventListener("htmx:sendError", () => banner("gone", "bad", "The console does not answer. Nothing was changed."));
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status >= 400) { event.detail.shouldSwap = true; event.detail.isError = false; }
  });

  follow();
  outbox.flush();
})();
