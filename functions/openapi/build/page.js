"use strict";

// Adds calls, tabs, copying, a search and a dark mode to the page, which shows the same text without it. Only the
// language of the samples is stored: a reload forgets the key. What a response contains is only ever added as text.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

// Copying: each block of code has a button, and one line for all of them tells a screen reader how it ended.

const said = element("p", { role: "status", class: "unseen" });
let reset = () => {};
let timer;

async function copy(pre, button) {
  clearTimeout(timer);
  reset();
  try {
    await navigator.clipboard.writeText(pre.textContent.trimEnd());
    button.textContent = "Copied";
  } catch {
    // The browser may forbid it, and does so on a host without TLS. The reader's own command copies what is selected.
    getSelection().selectAllChildren(pre);
    button.textContent = "Selected";
  }
  said.textContent = button.textContent;
  reset = () => {
    button.textContent = "Copy";
    said.textContent = "";
  };
  timer = setTimeout(reset, 2000);
}

function makeCopy(pre) {
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  const block = element("div", { class: "block" });
  pre.replaceWith(block);
  block.append(pre, button);
  button.addEventListener("click", () => copy(pre, button));
}

// Tabs: the samples in one language, in all operations at once.

const tabs = [];

/** Reads the stored language, or stores one. The browser may forbid both. */
function language(chosen) {
  try {
    if (chosen) localStorage.setItem("language", chosen.tab.textContent);
    return localStorage.getItem("language");
  } catch {
    return null;
  }
}

function choose(chosen) {
  const before = chosen.tab.getBoundingClientRect().top;
  for (const { tab, panel } of tabs) {
    const isChosen = tab.textContent === chosen.tab.textContent;
    tab.setAttribute("aria-selected", isChosen);
    tab.tabIndex = isChosen ? 0 : -1;
    panel.hidden = !isChosen;
  }
  // The samples above have other heights now. What was clicked stays where it was.
  scrollBy({ top: chosen.tab.getBoundingClientRect().top - before, behavior: "instant" });
}

function move(event, own) {
  const at = own.findIndex(({ tab }) => tab === event.target);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const chosen = own.at(next % own.length);
  choose(chosen);
  language(chosen);
  chosen.tab.focus();
}

function makeTabs(samples) {
  const id = samples.closest("section").id;
  const own = all("details", samples).map((details, at) => {
    const names = { tab: `${id}-tab-${at}`, panel: `${id}-panel-${at}` };
    const tab = element("button", { type: "button", role: "tab", id: names.tab, "aria-controls": names.panel });
    tab.append(details.querySelector("summary").textContent);
    const panel = element("div", { role: "tabpanel", id: names.panel, "aria-labelledby": names.tab });
    panel.append(details.querySelector("pre"));
    return { tab, panel };
  });
  const list = element("div", { role: "tablist", "aria-label": "Language" }, ...own.map(({ tab }) => tab));
  for (const each of own) each.tab.addEventListener("click", () => (choose(each), language(each)));
  list.addEventListener("keydown", (event) => move(event, own));
  samples.replaceChildren(list, ...own.map(({ panel }) => panel));
  tabs.push(...own);
}

// Calls: one form for each operation, and one key for all of them.

/** Encodes a value so that it also means nothing within the single quotes of a shell. */
const encode = (value) => encodeURIComponent(value).replaceAll("'", "%27");

function target(form) {
  let path = form.dataset.path;
  const query = [];
  for (const { name, value } of all("[name]", form)) {
    const parameter = `{${name}}`;
    if (path.includes(parameter)) path = path.replace(parameter, () => encode(value));
    else if (value) query.push(`${name}=${encode(value)}`);
  }
  return query.length ? `${path}?${query.join("&")}` : path;
}

/** Indents JSON without changing a token, so that no number loses a digit. Any other text stays as it is. */
function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+/g);
  return tokens.map((token) => {
    if (token === "{" || token === "[") return (depth++, token + line());
    if (token === "}" || token === "]") return (depth--, line() + token);
    if (token === ",") return token + line();
    return token === ":" ? ": " : token;
  }).join("");
}

const block = (text, kind = "") => element("pre", { tabindex: 0, class: kind }, element("code", {}, text));

function summary({ status, statusText, headers }) {
  const wait = headers.get("Retry-After");
  const limit = Number(headers.get("X-RateLimit-Limit"));
  const left = headers.get("X-RateLimit-Remaining");
  const parts = [`${status} ${statusText}`.trim()];
  if (wait) parts.push(`wait ${wait} ${wait === "1" ? "second" : "seconds"}`);
  if (limit) parts.push(`${left} of ${limit} requests left in this minute`);
  return parts.join(" · ");
}

/** Fills the first message whose placeholders all have a value. */
function fill({ messages }, params) {
  const filled = messages.map((message) =>
    message.replace(/{(\w+)}/g, (placeholder, name) => [params[name] ?? placeholder].flat().join(", ")));
  return filled.find((message) => !/{\w+}/.test(message)) ?? "";
}

/** Returns what an error means, in the words of the description. */
async function meaning(body) {
  try {
    const { error: { code, params, fields = [] } } = JSON.parse(body);
    const description = await (await fetch("/v1/openapi.json")).json();
    const bad = fields.map((field) =>
      element("li", {}, element("code", {}, field.field), ` ${fill(description["x-field-errors"][field.code], field.params)}`));
    return [element("p", {}, fill(description["x-errors"][code], params)), element("ul", {}, ...bad)];
  } catch {
    // The gateway's own errors have another form.
    return [];
  }
}

async function show(form, curl, response, body) {
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const meant = response.ok ? [] : await meaning(body);
  const fold = (title, text, attributes) => element("details", attributes, element("summary", {}, title), block(text));
  say(form, summary(response), response.ok, ...meant,
    element("h5", {}, "Command"), block(curl, "wrap"),
    fold("Body", pretty(body), meant.length ? {} : { open: "" }), fold("Headers", headers, {}));
}

function say(form, text, isGood, ...details) {
  const answer = form.querySelector(".answer");
  const status = form.querySelector("[role=status]");
  status.textContent = text;
  status.className = isGood ? "good" : "bad";
  answer.replaceChildren(...details);
  all("pre", answer).forEach(makeCopy);
}

async function send(form) {
  const path = target(form);
  const key = form.querySelector(".key")?.value.trim();
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const shown = key ? '  -H "Authorization: Bearer $API_KEY" \\\n' : "";
  try {
    const response = await fetch(path, { headers, cache: "no-store", credentials: "omit", redirect: "error" });
    await show(form, `curl --compressed \\\n${shown}  '${location.origin}${path}'`, response, await response.text());
  } catch {
    say(form, "No response. Check the connection, and that the key has only the characters that you were given.", false);
  }
}

function makeCalls(form) {
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    await send(form);
    button.setAttribute("aria-disabled", "false");
  });
  form.querySelector(".key")?.addEventListener("input", ({ target: { value } }) => {
    for (const key of all(".key")) key.value = value;
  });
}

// The search: it leaves only the links whose section contains every word, or what this page calls it. Names that contain
// them stand out, and so do the words in the text.

const SYNONYMS = {
  pagination: "page_size", paging: "page_size", cursor: "page_size", offset: "page_size",
  throttling: "rate limit", quota: "rate limit", ratelimit: "rate limit",
  javascript: "typescript", js: "typescript", node: "typescript",
  changelog: "growth", versioning: "growth", deprecation: "growth",
  replay: "send deliveries again", resend: "send deliveries again", auth: "api key", token: "api key",
};

/** Marks where the words stand in the text, in browsers that can. */
function mark(words) {
  if (!CSS.highlights) return;
  const highlight = new Highlight();
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (words.length && texts.nextNode()) {
    const text = texts.currentNode.data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(texts.currentNode, at);
        range.setEnd(texts.currentNode, at + word.length);
        highlight.add(range);
      }
    }
  }
  CSS.highlights.set("found", highlight);
}

function makeSearch(field, found) {
  const entries = all("nav li").map((item) => {
    const link = item.querySelector("a");
    const section = document.getElementById(link.hash.slice(1));
    return { item, link, name: link.textContent.toLowerCase(), text: section?.textContent.toLowerCase() ?? "" };
  });
  const groups = all("nav h2");
  let shown = [];
  const search = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean).map((word) => SYNONYMS[word] ?? word);
    mark(words.filter((word) => word.length > 1));
    const has = (text) => words.every((word) => text.includes(word));
    shown = entries.filter(({ name, text }) => has(name) || has(text));
    const visible = new Set(shown.map(({ item }) => item));
    for (const { item, name } of entries) {
      item.hidden = !visible.has(item);
      item.classList.toggle("hit", words.length !== 0 && has(name));
    }
    for (const group of groups) group.hidden = all("li:not([hidden])", group.nextElementSibling).length === 0;
    found.textContent = words.length ? `${shown.length || "Nothing"} found` : "";
  };
  const best = () => {
    const isExact = ({ name }) => name === field.value.trim().toLowerCase();
    return shown.find(isExact) ?? shown.find(({ item }) => item.matches(".hit")) ?? shown[0];
  };
  field.addEventListener("input", search);
  field.addEventListener("keydown", ({ key }) => {
    if (key === "Enter") best()?.link.click();
    if (key === "Escape") {
      field.value = "";
      search();
    }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (!field.checkVisibility()) document.querySelector("#contents").showPopover();
    field.focus();
  });
}

// Dark mode: as the system has it, until somebody chooses.

function makeTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const { dataset } = document.documentElement;
  const isDark = () => (dataset.theme ? dataset.theme === "dark" : system.matches);
  const update = () => (button.textContent = isDark() ? "Switch to light" : "Switch to dark");
  button.addEventListener("click", () => {
    dataset.theme = isDark() ? "light" : "dark";
    update();
  });
  system.addEventListener("change", update);
  update();
}

// Records are folded. A link to one unfolds it, also in browsers that do not do so themselves.

function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  const fold = target?.closest("details");
  if (!fold || fold.open) return;
  fold.open = true;
  target.scrollIntoView();
}

/** Marks the link of what stands at the top of the screen. */
function follow(links) {
  const places = links.flatMap((link) => document.getElementById(link.hash.slice(1)) ?? []);
  // The contents have another order than the text.
  places.sort((one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
  const find = () => {
    const at = places.findLast((place) => place.checkVisibility() && place.getBoundingClientRect().top < innerHeight / 4);
    for (const link of links) {
      const isHere = link.hash === `#${at?.id}`;
      if (isHere === link.hasAttribute("aria-current")) continue;
      if (isHere) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (isHere && link.checkVisibility()) link.scrollIntoView({ block: "nearest" });
    }
  };
  addEventListener("scroll", () => requestAnimationFrame(find), { passive: true });
  find();
}

function makeContents(contents) {
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a")) contents.hidePopover();
  });
}

makeSearch(document.querySelector("#search"), document.querySelector("#found"));
all(".samples").forEach(makeTabs);
if (tabs.length) choose(tabs.find(({ tab }) => tab.textContent === language()) ?? tabs[0]);
all("main pre").forEach(makeCopy);
document.body.append(said);
makeTheme(document.querySelector("#theme"));
all("form.call").forEach(makeCalls);
makeContents(document.querySelector("#contents"));
follow(all("nav a").filter((link) => link.hash));
for (const tool of all("#theme, .search")) tool.hidden = false;
addEventListener("hashchange", unfold);
unfold();
