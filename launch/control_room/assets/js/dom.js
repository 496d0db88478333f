// Making elements. Text goes in as text, never as markup: names of runs and processes are data.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name in element && typeof value === "boolean") element[name] = value;
    else element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// As `fill`, but only when `key` has changed since: a page that is open for hours must not build
// anew twice a second what looks the same.
export function fillOnce(element, key, make) {
  const told = JSON.stringify(key);
  if (known.get(element) === told) return;
  known.set(element, told);
  fill(element, make());
}

const known = new WeakMap();

// The same words again would make the browser lay them out again.
export function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

const SVG = "http://www.w3.org/2000/svg";

// A small curve without axes; gaps stay gaps.
export function spark(values, height = 30) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", `0 0 100 ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return svg;
  const least = Math.min(...known), most = Math.max(...known);
  const span = most - least || 1;
  const place = (value, index) => {
    const x = (100 * index) / (values.length - 1);
    const y = most === least ? height / 2 : height - 2 - ((value - least) / span) * (height - 4);
    return `${x.toFixed(2)},${y.toFixed(2)}`;
  };
  let path = "", first = null, last = null;
  values.forEach((value, index) => {
    if (value === null) return;
    path += (last === null ? "M" : "L") + place(value, index);
    first ??= index;
    last = index;
  });
  const fillPath = document.createElementNS(SVG, "path");
  fillPath.setAttribute("class", "fill");
  const at = (index) => ((100 * index) / (values.length - 1)).toFixed(2);
  fillPath.setAttribute("d", `${path}L${at(last)},${height}L${at(first)},${height}Z`);
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("class", "line");
  line.setAttribute("d", path);
  svg.append(fillPath, line);
  return svg;
}

// Kept until the theme changes: to ask the browser makes it lay out the page at once.
const colours = { theme: "", byName: new Map() };

export function colour(name) {
  const theme = document.documentElement.dataset.theme ?? "";
  if (theme !== colours.theme) Object.assign(colours, { theme, byName: new Map() });
  const found = colours.byName.get(name) ?? getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  if (found) colours.byName.set(name, found);
  return found;
}

export const seriesColour = (index) => colour(`--c${(index % 8) + 1}`);
// For elements, which change with the theme by themselves.
export const seriesShade = (index) => `var(--c${(index % 8) + 1})`;
