// Creates elements. Text is always set as text: no response of the server is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

export const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const setTitle = (element, text) => {
  const title = element.querySelector("title") ?? element.appendChild(svg("title"));
  if (title.textContent !== text) title.textContent = text;
  return element;
};

// Changes only text that differs, so that transitions run and the scroll position stays.
export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

export const facts = (pairs) =>
  pairs.map(([name, value, unit]) =>
    html("div", {}, html("dt", {}, name), html("dd", {}, value, unit ? html("small", {}, unit) : null)),
  );

// Calls `draw` with the width of the element, now and after every change.
export const onWidth = (element, draw) => {
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now !== width && now > 0) {
      width = now;
      draw(width);
    }
  }).observe(element);
  return () => width || Math.round(element.getBoundingClientRect().width) || 600;
};
