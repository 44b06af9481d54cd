// The report: the view of one review, which the page holds, and the address that says what of it is shown.
import { byId, useTexts } from "./drawing.js";
import { TEXTS } from "./text-en.js";
import { BOARD } from "./board.js";
import { ReviewView, unpack } from "./view.js";

useTexts(TEXTS);
const view = new ReviewView(byId("view"), unpack(JSON.parse(byId("review").textContent)), BOARD, { onShow: (ply) => history.replaceState(null, "", `#move=${ply}`) });
document.addEventListener("keydown", (event) => { if (view.key(event)) event.preventDefault(); });
window.addEventListener("hashchange", () => view.follow(location.hash));
view.follow(location.hash);
