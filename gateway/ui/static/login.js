// A key behind # never reached a server: take it, out of the address bar first, and send the form.
const form = document.querySelector('[data-login]');
const field = form.elements;
field.zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || '';
const key = location.hash.slice(1);
if (key) {
  history.replaceState(null, '', location.pathname + location.search);
  field.key.value = key;
  form.submit();
} else {
  // A link from another site comes without the cookie, but a question from here has it.
  fetch(form.dataset.me, { credentials: 'same-origin' })
    .then((answer) => { if (answer.status === 200) location.replace(field.next.value); })
    .catch(() => {});
}
