// One WebSocket to the server: requests with answers, events, and the same session again after the line was lost; not
// where another tab has taken the session over: two would take it from each other for ever.
import { worded } from "./drawing.js";

export const TAKEN = 4409, MANY = 4429; // why the server closes a line

export class Connection extends EventTarget {
  constructor() {
    super();
    this.waiting = new Map();
    this.next = 1;
    this.delay = 250;
    this.session = sessionStorage.getItem("keima-session");
    this.open();
  }

  open() {
    const url = new URL("/ws", location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    if (this.session) url.searchParams.set("session", this.session);
    const socket = (this.socket = new WebSocket(url));
    socket.addEventListener("open", () => { this.delay = 250; this.tell("line", { open: true }); });
    socket.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
    socket.addEventListener("close", ({ code }) => {
      for (const { reject } of this.waiting.values()) reject(new Error("closed"));
      this.waiting.clear();
      this.tell("line", { open: false, code });
      if (code === TAKEN) return;
      setTimeout(() => this.open(), this.delay);
      this.delay = Math.min(5000, this.delay * 1.6);
    });
  }

  tell(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }

  receive(message) {
    if (message.event) {
      if (message.event === "welcome") { this.session = message.session; sessionStorage.setItem("keima-session", message.session); }
      this.tell("news", message);
      return;
    }
    const waiting = this.waiting.get(message.id);
    if (!waiting) return;
    this.waiting.delete(message.id);
    if (message.error === undefined) waiting.resolve(message);
    else waiting.reject(Object.assign(new Error(worded(message.worded || message.error)), { field: message.field, told: true }));
  }

  // The answer to a request. Rejects with the server's words, or where the line is down.
  ask(what, fields = {}) {
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) { reject(new Error("closed")); return; }
      const id = this.next++;
      this.waiting.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ id, do: what, ...fields }));
    });
  }
}
