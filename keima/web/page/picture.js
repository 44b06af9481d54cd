// The board as a picture to keep: an SVG that stands alone, or a PNG of it.
const resolve = (name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};

export function boardSvg(root) {
  const copy = root.cloneNode(true), box = root.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", Math.round(48 * box.width));
  copy.setAttribute("height", Math.round(48 * box.height));
  copy.setAttribute("font-family", "sans-serif");
  const known = new Map();
  return new XMLSerializer().serializeToString(copy).replace(/var\((--[\w-]+)\)/g, (_, name) => {
    if (!known.has(name)) known.set(name, resolve(name));
    return known.get(name);
  });
}

export async function boardPng(root) {
  const text = boardSvg(root), image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas"), scale = 1200 / Math.max(image.width, image.height);
  canvas.width = Math.round(image.width * scale);
  canvas.height = Math.round(image.height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
