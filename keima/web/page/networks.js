// Networks: which there are, what they are, how quick they will be on this machine.
import { html, t, worded } from "./drawing.js";
import { button, choose } from "./forms.js";

export class NetworksPanel {
  constructor(app) {
    this.app = app;
    this.list = html("ul", { class: "networks" });
    this.path = html("input", { type: "text", "aria-label": t("networks.path"), placeholder: t("networks.path") });
    this.form = html("form", { class: "row" }, this.path, html("button", { type: "submit", class: "button", text: t("networks.open") }));
    this.form.addEventListener("submit", (event) => { event.preventDefault(); if (this.path.value.trim()) this.open(this.path.value.trim()); });
    this.node = html("section", { class: "card pad", "aria-label": t("page.networks") }, html("h2", { text: t("page.networks") }), this.list, this.form);
  }

  // By its name in the list, or a file's path; what is too large is loaded after a question.
  async open(network) {
    const slow = this.app.networks.find((one) => one.name === network && one.too_large && one.state === "listed");
    if (slow && !(await choose(`${slow.name}: ${worded(slow.worded || slow.message)}`, [[true, t("networks.anyway")]]))) return;
    try {
      await this.app.connection.ask("open_network", { network, anyway: Boolean(slow) });
    } catch (error) {
      this.app.complain(error, 0);
    }
  }

  networksChanged() {
    this.form.hidden = !this.app.local;
    this.list.replaceChildren(...this.app.networks.map((one) => {
      const speed = one.visits_per_second ? t(one.measured ? "networks.measured" : "networks.estimated", { n: one.visits_per_second < 10 ? one.visits_per_second.toFixed(1) : Math.round(one.visits_per_second) }) : "";
      const pedigree = Object.entries(one.pedigree || {}).filter(([, value]) => value), facts = [t(`game.${one.game}`), one.system, one.parameters ? t("networks.parameters", { n: one.parameters.toLocaleString("en") }) : "", speed].filter(Boolean);
      return html("li", null, html("div", { class: "row between" }, html("h3", { text: one.name }), html("span", { class: `tag ${{ ready: "good", failed: "blunder", loading: "slip" }[one.state] || ""}`, text: t(`state.${one.state}`) })),
        html("p", { class: "soft", text: facts.join(" · ") }), one.message ? html("p", { class: "notice", text: worded(one.worded || one.message) }) : null,
        one.architecture || pedigree.length ? html("details", null, html("summary", { text: t("networks.details") }), one.architecture ? html("p", { class: "soft", text: one.architecture }) : null, html("dl", null, ...pedigree.flatMap(([name, value]) => [html("dt", { text: name.replaceAll("_", " ") }), html("dd", { text: value })]))) : null,
        ["listed", "failed"].includes(one.state) ? button(t("networks.load"), () => this.open(one.name)) : null);
    }));
  }
}
