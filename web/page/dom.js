// Building blocks of the page. Text only ever enters the document as text.

/** Makes an element. Properties that start with "on" are listeners, names with a dash and "role" are attributes. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Sets text, touching the document only when it differs. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets or removes an attribute, touching the document only when it differs. */
export function setAttr(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, String(value));
  }
}

/** Marks a button as at work and says so; the returned function ends that. */
export function busy(button, words) {
  const before = button.textContent;
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  button.textContent = words;
  return () => {
    button.disabled = false;
    button.removeAttribute("aria-busy");
    button.textContent = before;
  };
}
