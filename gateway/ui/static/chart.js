// Charts: crosshair, ranges, zoom. All texts come from the server.
const get = url => fetch(url, { credentials: "same-origin" }).then(answer => answer.ok ? answer : Promise.reject());

// Fetch the part for another range, and name it in the address.
function go(inside, given) {
	const part = inside.closest("[data-src]"), query = "?" + new URLSearchParams(given), page = location.pathname + query;
	const source = part.dataset.src.split("?")[0] + query;
	get(source).then(answer => answer.text()).then(html => {
		part.dataset.src = source;
		part.innerHTML = html;
		history.replaceState(null, "", page);
		const current = part.querySelector(".ranges [aria-current]");
		if (current) current.focus();
	}).catch(() => location.assign(page));
}

function start(root) {
	const drawing = root.querySelector(".drawing"), handle = root.querySelector(".handle"), text = root.querySelector(".at");
	const least = +handle.min, range = handle.max - least, fingers = new Map();
	let view = [least, least + range], first, form, loading, points, spread, timer;

	const load = () => loading = loading || get(root.dataset.series).then(async answer => points = await answer.json());
	const near = at => Math.max(0, points.t.filter(each => each <= at).length - 1);
	const on = (name, act) => drawing.addEventListener(name, act, { passive: false });

	function area() {
		const svg = [...drawing.children].find(each => each.getClientRects()[0]), lines = svg.querySelector(".lines");
		return [svg, lines, ...["x", "y", "width", "height"].map(name => +lines.getAttribute(name))];
	}

	function time(px) {
		const [svg, , x, , width] = area(), rect = svg.getBoundingClientRect();
		const part = ((px - rect.left) / rect.width * svg.viewBox.baseVal.width - x) / width;
		return least + Math.min(1, Math.max(0, part)) * range;
	}

	function mark(name, ...times) {
		const [svg, , x, y, width, height] = area(), made = document.createElementNS(svg.namespaceURI, "path");
		const [begin, end] = times.map(at => x + (at - least) / range * width);
		drawing.querySelectorAll("." + name).forEach(old => old.remove());
		made.setAttribute("class", name);
		made.setAttribute("d", `M${begin} ${y}v${height}H${end}v-${height}z`);
		svg.append(made);
	}

	const show = (at, step = 0) => load().then(() => {
		const n = Math.max(0, Math.min(points.t.length - 1, near(at) + step)), when = handle.value = points.t[n];
		handle.setAttribute("aria-valuetext", text.textContent = points.text[n]);
		mark("cursor", when, when);
	});

	// Scale the lines now; the sharp chart comes later.
	function zoom(factor, at) {
		const [, lines] = area(), span = Math.max(3600, (view[1] - view[0]) * factor), begin = at - (at - view[0]) / (view[1] - view[0]) * span;
		const [, , wide, high] = (lines.whole = lines.whole || lines.getAttribute("viewBox")).split(" ");
		view = [begin, begin + span];
		lines.setAttribute("viewBox", `${(begin - least) / range * wide} 0 ${span / range * wide} ${high}`);
		clearTimeout(timer);
		const [from, to] = view.map(at => new Date(at * 1000).toISOString());
		timer = setTimeout(go, 400, root, { from, to });
	}

	const choose = at => load().then(() => {
		const ends = [first, at].sort((a, b) => a - b), [low, high] = ends.map(near), count = form.querySelector("[data-count]");
		mark("chosen", ...ends);
		form.elements.from.value = points.local[low];
		form.elements.to.value = points.local[high];
		if (count) count.textContent = count.dataset.count.replace("#", points.n.slice(low, high + 1).reduce((a, b) => a + b));
	});

	on("pointerdown", event => {
		form = document.querySelector("[open] [data-leave-out]");
		first = time(event.clientX);
		fingers.set(event.pointerId, event.clientX);
		if (form) event.preventDefault();
		else show(first);
	});
	on("pointermove", event => {
		if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event.clientX);
		const [one, other] = fingers.values(), at = time(event.clientX);
		if (other) {
			if (spread) zoom(spread / Math.abs(one - other), time((one + other) / 2));
			spread = Math.abs(one - other);
		} else if (form && one) choose(at);
		else show(at);
	});
	for (const name of ["pointerup", "pointercancel", "pointerleave"]) on(name, () => {
		fingers.clear();
		spread = 0;
	});
	on("dblclick", () => go(root, { range: "all" }));
	on("wheel", event => {
		if (!event.ctrlKey) return;
		event.preventDefault();
		zoom(event.deltaY > 0 ? 1.25 : 0.8, time(event.clientX));
	});
	handle.oninput = () => show(+handle.value);
	handle.onkeydown = event => {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (step) event.preventDefault(show(+handle.value, step));
	};
	root.className = "plot ready";
}

const look = () => document.querySelectorAll(".plot:not(.ready)").forEach(start);

document.addEventListener("click", event => {
	const link = event.target.closest("[data-src] .ranges a");
	if (!link || event.ctrlKey || event.metaKey) return;
	event.preventDefault();
	go(link, link.search.slice(1));
});
document.addEventListener("submit", event => {
	if (!event.target.closest("[data-src] .ranges")) return;
	event.preventDefault();
	go(event.target, new FormData(event.target));
});
addEventListener("beforeprint", () => document.querySelectorAll(".plot details").forEach(each => each.open = 1));
new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
look();
