// Fields of forms, each with its label.
import { html, t, worded } from "./drawing.js";

let count = 0;

export function field(label, input, hint = null) {
  input.id = input.id || `field-${(count += 1)}`;
  return html("div", { class: "field", title: hint }, html("label", { for: input.id, text: label }), input);
}

// A choice of [value, text] pairs, the one chosen, else the first; and the same choice with other ones.
export const select = (options, chosen, attributes = {}) => offer(html("select", attributes), options, chosen);

export function offer(node, options, chosen) {
  node.replaceChildren(...options.map(([value, text]) => html("option", { value, text })));
  node.value = options.some(([value]) => value === chosen) ? chosen : options.length ? options[0][0] : "";
  return node;
}

export const number = (value, attributes = {}) => html("input", { type: "number", inputmode: "decimal", value, ...attributes });

export const button = (text, act, attributes = {}) => html("button", { type: "button", class: "button", onclick: act, text, ...attributes });

export const group = (title, ...children) => html("fieldset", null, html("legend", { text: title }), ...children);

// A field of a game's form (`choices` of `welcome`), and how its value is read.
export function choiceField(choice) {
  const label = worded({ key: `choice.${choice.name}`, text: choice.title });
  if (choice.kind === "choice") {
    const input = select(choice.values.map(([value, text]) => [String(value), worded({ key: `${choice.name}.${value}`, text })]), String(choice.default));
    return { node: field(label, input), read: () => choice.values.find(([value]) => String(value) === input.value)[0] };
  }
  if (choice.kind === "flag") {
    const input = html("input", { type: "checkbox", checked: Boolean(choice.default) });
    return { node: field(label, input), read: () => input.checked };
  }
  if (choice.kind === "text") {
    const input = html("input", { type: "text", value: choice.default || "" });
    return { node: field(label, input), read: () => input.value };
  }
  const input = number(choice.default === null || choice.default === undefined ? "" : choice.default, { min: choice.least, max: choice.most, step: choice.kind === "number" ? choice.step || "any" : 1 });
  return { node: field(label, input), read: () => (input.value === "" ? undefined : Number(input.value)) };
}

// A question with a few answers; resolves to the one chosen, or null.
export function choose(title, options) {
  return new Promise((resolve) => {
    const dialog = html("dialog", { "aria-label": title });
    const done = (value) => { dialog.close(); dialog.remove(); resolve(value); };
    dialog.append(html("h2", { text: title }), html("div", { class: "row" }, ...options.map(([value, text]) => button(text, () => done(value)))), button(t("do.cancel"), () => done(null), { class: "button quiet" }));
    dialog.addEventListener("cancel", () => done(null));
    document.body.append(dialog);
    dialog.showModal();
  });
}
