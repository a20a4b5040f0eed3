'use strict';

// Deeper JSON is shown as it came: its indentation would grow beyond all bounds.
const DEEPEST = 64;

const by = (id) => document.getElementById(id);
const list = by('deliveries');

async function follow() {
  try {
    const kept = await (await fetch('/dev/inbox.json')).json();
    const keys = new Set(kept.map((delivery) => delivery.key));
    for (const item of [...list.children]) if (!keys.delete(item.dataset.key)) item.remove();
    for (const delivery of kept.reverse()) if (keys.has(delivery.key)) list.prepend(row(delivery));
    by('state').className = 'live';
    recount();
  } catch {
    by('state').className = '';
  }
  by('state').textContent = by('state').className ? 'Live' : 'Reconnecting…';
  setTimeout(follow, 1000);
}

function recount() {
  const count = list.children.length;
  const isEmpty = count === 0;
  if (isEmpty === by('none').hidden) by('help').open = isEmpty;
  by('none').hidden = !isEmpty;
  by('empty').disabled = isEmpty;
  by('count').textContent = count === 1 ? '1 delivery' : `${count} deliveries`;
  document.title = isEmpty ? 'Webhook inbox' : `(${count}) Webhook inbox`;
}

function row(delivery) {
  const item = by('delivery').content.cloneNode(true).firstElementChild;
  const at = (selector) => item.querySelector(selector);
  const arrived = new Date(delivery.received_at);
  item.dataset.key = delivery.key;
  at('time').textContent = clock(arrived, 3);
  at('time').title = arrived.toString();
  at('.event').textContent = shown(delivery.event ?? '–');
  at('.id').textContent = shown(delivery.delivery_id ?? '–');
  at('.path').textContent = shown(delivery.path);
  at('.sent').textContent = sent(delivery.headers['x-service-timestamp']);
  judge(at('.service'), delivery.service_signature);
  judge(at('.standard'), delivery.standard_signature, delivery.standard_problem);
  at('.seen').hidden = delivery.seen === 1;
  at('.seen').textContent = `duplicate, seen ${delivery.seen}×`;
  at('details').addEventListener('toggle', () => fill(at, delivery), { once: true });
  return item;
}

// What is inside is made when it is first looked at.
function fill(at, delivery) {
  for (const [name, value] of Object.entries(delivery.headers)) {
    const line = at('tbody').insertRow();
    line.insertCell().textContent = shown(name);
    line.insertCell().textContent = shown(value);
  }
  at('pre').textContent = delivery.body === '' ? 'empty' : shown(pretty(delivery.body));
}

function judge(badge, verdict, problem) {
  const marks = { verified: '✓ verified', wrong: '✗ not verified', missing: '✗ missing', unknown: '? unknown' };
  badge.classList.add(verdict);
  badge.textContent = marks[verdict] + (problem ? `: ${problem}` : '');
}

function clock(date, digits) {
  const parts = { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: digits };
  return date.toLocaleTimeString([], { ...parts, hourCycle: 'h23' });
}

function sent(header) {
  const date = new Date(Number(header ?? NaN) * 1000);
  return isNaN(date) ? shown(header ?? '–') : clock(date);
}

// Characters that cannot be seen, or turn the direction of what follows, as escapes.
function shown(text) {
  const hidden = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  return text.replace(hidden, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// JSON laid out anew, its numbers and strings as they were written; anything else as it is.
function pretty(text) {
  let depth = 0;
  const line = (by) => {
    depth += by;
    if (depth > DEEPEST) throw new Error('too deep');
    return '\n' + '  '.repeat(depth);
  };
  try {
    JSON.parse(text);
    const tokens = text.matchAll(/"(?:[^"\\]+|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|[^\s{}[\],:"]+/g);
    return [...tokens].map(([token]) => {
      if (token === ':') return ': ';
      if (token === ',') return token + line(0);
      if (token === '{' || token === '[') return token + line(1);
      return token === '}' || token === ']' ? line(-1) + token : token;
    }).join('');
  } catch {
    return text;
  }
}

async function copy({ target }) {
  const command = target.previousElementSibling;
  try {
    await navigator.clipboard.writeText(command.textContent);
    target.textContent = 'Copied';
  } catch {
    // The browser may forbid it. The reader's own command copies what is selected.
    getSelection().selectAllChildren(command);
    target.textContent = 'Selected';
  }
}

for (const base of document.querySelectorAll('.base')) base.textContent = location.origin;
by('copy').addEventListener('click', copy);
by('empty').addEventListener('click', () => fetch('/dev/inbox', { method: 'DELETE' }));
follow();
