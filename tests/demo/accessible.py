"""What can be measured of a page in a browser: contrast, focus, alternative text, and what moves."""

from __future__ import annotations

from typing import Any

from demo.chromium import until

# Colours as the browser computes them, laid over each other from the page's background up.
COLOURS = """
const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(colour) {
  context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
}
function over(top, under) { return [0, 1, 2].map(k => top[3] * top[k] + (1 - top[3]) * under[k]); }
function ground(element) {
  if (!element) return [255, 255, 255];
  const own = rgba(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own.slice(0, 3) : over(own, ground(element.parentElement));
}
function luminance(colour) {
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = colour.map(v => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(colour, under, alpha = 1) {
  const [r, g, b, a] = rgba(colour);
  const both = [luminance(over([r, g, b, a * alpha], under)), luminance(under)].sort((x, y) => x - y);
  return (both[1] + 0.05) / (both[0] + 0.05);
}
"""
CONTRAST = """
let count = 0; const bad = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join('').trim();
  const words = own || (element.matches('input[type=number], select') ? element.value : '');
  if (!words || !element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
  let alpha = 1;
  for (let e = element; e; e = e.parentElement) alpha *= Number(getComputedStyle(e).opacity);
  const ratio = contrast(getComputedStyle(element).color, ground(element), alpha);
  count += 1;
  if (ratio < arguments[0]) bad.push(`${ratio.toFixed(2)}: ${words.slice(0, 40)}`);
}
return [count, bad];
"""
# Whether what gets the focus, or what stands for it (a label, a slider's frame), has an outline then.
FOCUS = """
const unseen = window.unseen = [], places = window.places = new Set();
document.activeElement.blur();
window.scrollTo(0, 0);
window.listener && document.removeEventListener('focusin', window.listener);
document.addEventListener('focusin', window.listener = event => {
  let visible = false;
  for (let e = event.target, k = 0; e && k < 3; e = e.parentElement, k += 1) {
    const style = getComputedStyle(e), outlined = style.outlineStyle !== 'none';
    const strong = contrast(style.outlineColor, ground(e.parentElement)) >= 3;
    visible ||= outlined && strong && parseFloat(style.outlineWidth) >= 2;
  }
  places.add(event.target);
  if (!visible) unseen.push(event.target.outerHTML.slice(0, 120));
});
"""
STILL = """
return document.getAnimations().every(
  each => each.playState !== 'running' || each.effect.getComputedTiming().duration > 2000);
"""
MOVED = """
window.moved = [];
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) window.moved.push([entry.value, ...entry.sources.map(
    s => (s.node && (s.node.id || s.node.className || s.node.nodeName)) + '')]);
}).observe({type: 'layout-shift'});
"""


def low_contrast(browser: Any, least: float = 4.5, words: int = 30) -> list[str]:
    """Texts whose contrast is lower, with their ratio, of a page with at least so many."""
    # Not of what fades in or out just now.
    until(lambda: browser.driver.execute_script(STILL), "an end of all transitions")
    count, bad = browser.driver.execute_script(COLOURS + CONTRAST, least)
    assert count > words
    return bad


def without_focus(browser: Any, tabs: int) -> tuple[int, list[str]]:
    """Press Tab so often: how many places get the focus, and those of them that do not show it."""
    from selenium.webdriver import ActionChains

    browser.driver.execute_script(COLOURS + FOCUS)
    ActionChains(browser.driver).send_keys("\ue004" * tabs).perform()
    count, unseen = browser.driver.execute_script("return [window.places.size, window.unseen]")
    return count, unseen


def resize(browser: Any, width: int, height: int = 900) -> None:
    """A window of exactly this size, narrower than chromium's own may be."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def watch(browser: Any) -> None:
    """From now on notice everything that moves by itself."""
    browser.driver.execute_script(MOVED)


def moved(browser: Any) -> list[Any]:
    return list(browser.driver.execute_script("return window.moved"))
