/* The page without a network: its own files are kept at the first visit, a new release replaces them all. tools/make_app.py writes
 * the list and the name, which is a digest of the files. */
'use strict';
const NAME = '@NAME@', FILES = ['./', ...@FILES@];
self.addEventListener('install', event => event.waitUntil(caches.open(NAME).then(cache => cache.addAll(FILES)).then(() => self.skipWaiting())));
self.addEventListener('activate', event => event.waitUntil(
  caches.keys().then(names => Promise.all(names.filter(name => name.startsWith('oomsight-') && name !== NAME).map(name => caches.delete(name)))).then(() => self.clients.claim())));
self.addEventListener('fetch', event => {
  if (event.request.method !== 'GET' || new URL(event.request.url).origin !== location.origin) return;
  event.respondWith(caches.open(NAME).then(cache => cache.match(event.request, { ignoreSearch: true })).then(kept => kept || fetch(event.request)));
});
