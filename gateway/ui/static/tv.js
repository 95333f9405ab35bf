// Fresh figures, and some pixels to and fro each minute: nothing burns in.
const wall = document.querySelector("[data-src]"), source = new EventSource(wall.dataset.events);

function fresh() {
	fetch(wall.dataset.src).then(answer => answer.status == 404 ? location.reload() : answer.ok && answer.text())
		.then(html => { if (html) wall.innerHTML = html; }, () => 0);
}

["reading", "brew", "alarm", "everything"].forEach(name => source.addEventListener(name, fresh));
setInterval(() => {
	const minute = Math.floor(Date.now() / 6e4);
	wall.style.transform = `translate(${minute % 5 * 4 - 8}px,${minute % 3 * 4 - 4}px)`;
	fresh();
}, 6e4);
if (navigator.wakeLock) navigator.wakeLock.request("screen").catch(() => 0);
