"use strict";
// Decisions on their way to the disk. Each is kept in this browser until the server says that it is on disk; where
// the server does not answer, the page says so and sends it again. The key makes a second sending harmless.
// Each lies under a name of its own, so that two tabs never write over each other's, and says of which model it is:
// another model on the same port gets none of it.
(() => {
  const PREFIX = "ringleader-decision-";
  const AGAIN = 2000;
  const model = document.body.dataset.model;
  const listeners = [];
  const heads = new Map();     // by account: the last event that this page made, which is no conflict with the next
  const memory = new Map();    // where the browser stores nothing
  const account = (entry) => JSON.stringify([entry.mode, entry.entity, entry.target]);
  let sending = false;
  let timer = null;

  const parsed = (text) => { try { return JSON.parse(text); } catch { return null; } };
  function all() {
    const kept = Array.from(memory.values());
    try {
      for (let i = 0; i < localStorage.length; i++) {
        const name = localStorage.key(i);
        const entry = name.startsWith(PREFIX) && parsed(localStorage.getItem(name));
        if (entry && entry.key) kept.push(entry);
      }
    } catch { /* the browser forbids it */ }
    return kept.sort((a, b) => a.order - b.order);
  }
  const read = () => all().filter((entry) => entry.model === model);
  const elsewhere = () => all().filter((entry) => entry.model !== model).length;
  const tell = (event) => listeners.forEach((listener) => listener(event));
  const newKey = () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  };

  function add(entry) {
    const last = all().pop();
    const whole = { key: newKey(), ...entry, model, order: last ? last.order + 1 : 1 };
    keep(whole);
    flush();
    return whole;
  }

  function keep(entry) {
    try { localStorage.setItem(PREFIX + entry.key, JSON.stringify(entry)); } catch { memory.set(entry.key, entry); }
  }

  // Takes back what is on its way, whichever tab sends it: it is sent all the same, since it may be on disk already.
  // False where it is not on its way any more.
  function undo(key) {
    const entry = read().find((other) => other.key === key);
    if (entry) keep({ ...entry, undone: true });
    return Boolean(entry);
  }

  function remove(key) {
    memory.delete(key);
    try { localStorage.removeItem(PREFIX + key); } catch { /* there is none */ }
  }

  async function send(entry) {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": entry.key, "Ringleader-Model": model };
    if (entry.reverts) {
      return fetch(`/api/v1/decisions/${entry.reverts}/revert`, { method: "POST", headers, body: "{}" });
    }
    if (entry.head !== undefined) headers["If-Match"] = `"${Math.max(entry.head, heads.get(account(entry)) || 0)}"`;
    if (entry.run) headers["Snapshot-Seen"] = entry.run;
    const { mode, entity, verdict, note, target } = entry;
    return fetch("/api/v1/decisions", {
      method: "POST", headers, body: JSON.stringify({ mode, entity, verdict, note: note || "", target }),
    });
  }

  async function flush() {
    if (sending) return;
    sending = true;
    clearTimeout(timer);
    try {
      for (let entry = read()[0]; entry; entry = read()[0]) {
        let answer;
        try {
          answer = await send(entry);
        } catch {
          return wait("The console does not answer.");
        }
        const body = await answer.json().catch(() => ({}));
        if (answer.ok) {
          const { undone } = read().find((other) => other.key === entry.key) || entry;
          remove(entry.key);
          const decision = body.items ? body.items[0] : body;
          heads.set(account(decision), decision.id);
          tell({ kind: "saved", entry, decision });
          const { mode, entity, target, code, url } = entry;
          if (undone) add({ reverts: decision.id, mode, entity, target, code, url });
        } else if (answer.status === 401) {
          return wait("The session has ended: open the link that ringleader serve printed in this browser.");
        } else if (answer.status === 412) {
          return wait("Another model is served here now.");
        } else if (answer.status >= 500) {
          return wait(answer.status === 507 ? "The disk is full or cannot be written." : "The console made a mistake.");
        } else {
          remove(entry.key);
          tell({ kind: answer.status === 409 ? "conflict" : "refused", entry, problem: body });
        }
      }
      tell({ kind: "empty", elsewhere: elsewhere() });
    } finally {
      sending = false;
    }
  }

  function wait(reason) {
    tell({ kind: "waiting", reason, count: read().length });
    clearTimeout(timer);
    timer = setTimeout(flush, AGAIN);
  }

  window.addEventListener("online", flush);
  window.outbox = { add, undo, flush, listen: (listener) => listeners.push(listener) };
})();
