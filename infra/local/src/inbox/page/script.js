'use strict';

// As many as the service keeps.
const KEPT = 200;
// Deeper JSON is shown as it came: its indentation would grow beyond all bounds.
const DEEPEST = 64;

const by = (id) => document.getElementById(id);
const list = by('deliveries');

function follow() {
  const source = new EventSource('/dev/inbox/events');
  source.addEventListener('open', () => tell(true));
  source.addEventListener('emptied', () => {
    list.replaceChildren();
    recount();
  });
  source.addEventListener('delivery', (event) => {
    list.prepend(row(JSON.parse(event.data)));
    while (list.children.length > KEPT) list.lastElementChild.remove();
    recount();
  });
  source.addEventListener('error', () => {
    tell(false);
    // Most failures the browser mends by itself.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 1000);
  });
}

function tell(isLive) {
  by('state').textContent = isLive ? 'Live' : 'Reconnecting…';
  by('state').className = isLive ? 'live' : '';
}

function recount() {
  const count = list.children.length;
  const isEmpty = count === 0;
  if (isEmpty === by('none').hidden) by('help').open = isEmpty;
  by('none').hidden = !isEmpty;
  by('columns').hidden = by('empty').disabled = isEmpty;
  by('count').textContent = count === 1 ? '1 delivery' : `${count} deliveries`;
  document.title = isEmpty ? 'Webhook inbox' : `(${count}) Webhook inbox`;
}

function row(delivery) {
  const item = by('delivery').content.cloneNode(true).firstElementChild;
  const at = (selector) => item.querySelector(selector);
  const arrived = new Date(delivery.received_at);
  at('time').textContent = clock(arrived, 3);
  at('time').dateTime = delivery.received_at;
  at('time').title = arrived.toString();
  at('.event').textContent = shown(delivery.event ?? '–');
  at('.id code').textContent = shown(delivery.delivery_id ?? '–');
  at('.path code').textContent = shown(delivery.path);
  at('.sent').textContent = sent(delivery.headers['x-service-timestamp']);
  at('.service').append(...badge(delivery.service_signature));
  at('.standard').append(...badge(delivery.standard_signature, delivery.standard_problem));
  at('.seen').hidden = delivery.seen === 1;
  at('.seen').textContent = `duplicate, seen ${delivery.seen}×`;
  at('details').addEventListener('toggle', () => fill(at, delivery), { once: true });
  return item;
}

// What is inside is made when it is first looked at.
function fill(at, delivery) {
  for (const [name, value] of Object.entries(delivery.headers)) {
    const [line, heading, cell] = ['tr', 'th', 'td'].map((tag) => document.createElement(tag));
    heading.scope = 'row';
    heading.textContent = shown(name);
    cell.textContent = shown(value);
    line.append(heading, cell);
    at('tbody').append(line);
  }
  at('pre code').textContent = delivery.body === '' ? 'empty' : shown(pretty(delivery.body));
}

function badge(verdict, problem) {
  const [mark, text] = {
    verified: ['✓', 'verified'],
    wrong: ['✗', 'not verified'],
    missing: ['✗', 'not verified'],
    unknown: ['?', 'unknown'],
  }[verdict];
  const pill = document.createElement('span');
  pill.className = `badge ${verdict}`;
  pill.textContent = `${mark} ${text}`;
  const reason = document.createElement('span');
  reason.className = 'reason';
  reason.textContent = problem ?? { wrong: 'wrong', missing: 'missing' }[verdict] ?? '';
  return [pill, ' ', reason];
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
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(/"(?:[^"\\]+|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  let [result, depth] = ['', 0];
  const line = () => '\n' + '  '.repeat(depth);
  for (const [index, token] of tokens.entries()) {
    if ('{['.includes(token)) {
      depth += 1;
      if (depth > DEEPEST) return text;
      result += '}]'.includes(tokens[index + 1]) ? token : token + line();
    } else if ('}]'.includes(token)) {
      depth -= 1;
      result += '{['.includes(tokens[index - 1]) ? token : line() + token;
    } else {
      result += token === ',' ? ',' + line() : token === ':' ? ': ' : token;
    }
  }
  return result;
}

for (const base of document.querySelectorAll('.base')) base.textContent = location.origin;
by('empty').addEventListener('click', () => fetch('/dev/inbox', { method: 'DELETE' }));
follow();
