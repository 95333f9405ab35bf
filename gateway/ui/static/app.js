// Live parts, ages, copy.
const PACE = 2000; // ms between fetches
const LIVE = '[data-live]';
const doc = document;
const words = doc.body.dataset;
const dot = doc.querySelector('[data-events]');
const skew = words.now * 1000 - Date.now() || 0;
const each = (query, call, root) => (root || doc).querySelectorAll(query).forEach(call);
let news, begun;

function say(state) {
  dot.dataset.state = state;
  dot.textContent = dot.dataset[state + 'Word'];
  dot.hidden = false;
}

function age(time) {
  const age = (Date.now() + skew - Date.parse(time.dateTime)) / 60000;
  const [name, size] = age < 1 ? ['Now', 1] : age < 120 ? ['Minutes', 1] : age < 2880 ? ['Hours', 60] : ['Days', 1440];
  time.textContent = words['age' + name].replace('#', Math.floor(age / size));
}

function ready(root) {
  each('[data-copy]', (copy) => (copy.hidden = 0), root);
  each('[data-age]', age, root);
}

// Left alone while typed in.
const busy = (part) => part.typed || part.querySelector('input:focus,textarea:focus,select:focus');

function put(part, html) {
  const seen = [...part.querySelectorAll('a,button,summary')];
  const was = seen.map((key) => key.parentNode.open);
  const place = seen.indexOf(doc.activeElement);
  part.style.minHeight = part.offsetHeight + 'px';
  part.innerHTML = html;
  each('a,button,summary', (now, at) => {
    if (at === place) now.focus();
    if (was[at]) now.parentNode.open = true;
  }, part);
  ready(part);
  part.dispatchEvent(new Event('part', { bubbles: true }));
}

function refresh(part) {
  if (part.timer) return;
  part.timer = setTimeout(() => {
    part.timer = 0;
    if (doc.hidden || part.typed) return;
    part.next = Date.now() + PACE;
    if (busy(part)) return refresh(part);
    fetch(part.dataset.src, { headers: { 'X-Requested-With': 'fetch' } })
      .then((answer) => answer.ok && answer.text())
      .then((html) => html !== false && !busy(part) && put(part, html), () => {});
  }, (part.next || 0) - Date.now());
}

function changed({ type, data }) {
  const ids = JSON.parse(data);
  const names = Object.keys(ids).map((id) => (type === 'sending' ? type : id) + ':' + ids[id]).concat(type);
  each(LIVE, (part) => {
    const its = part.dataset.live.split(' ');
    if (type === 'everything' || names.some((name) => its.includes(name))) refresh(part);
  });
}

const close = () => { news = news && news.close(); };

function open() {
  if (news || doc.hidden) return;
  say('waiting');
  news = new EventSource(dot.dataset.events);
  news.onopen = () => {
    say('live');
    if (begun) each(LIVE, refresh);
    begun = true;
  };
  news.onerror = () => {
    const over = news.readyState > 1;
    say(over ? 'off' : 'waiting');
    if (over) close(setTimeout(open, 30000));
  };
  'reading device brew insight quarantine sending alarm gateway everything'.split(' ')
    .forEach((kind) => news.addEventListener(kind, changed));
}

doc.addEventListener('input', ({ target }) => {
  const part = target.type !== 'range' && target.closest(LIVE);
  if (part) part.typed = true;
});
doc.addEventListener('click', ({ target }) => {
  if (!target.matches('[data-copy]')) return;
  target.previousElementSibling.select();
  if (doc.execCommand('copy')) target.textContent = '✓ ' + target.textContent.replace('✓ ', '');
});
onresize = () => each(LIVE, (part) => { part.style.minHeight = ''; });
if (dot) {
  doc.addEventListener('visibilitychange', () => (doc.hidden ? close() : open()));
  open();
}
setInterval(ready, 20000);
ready();
