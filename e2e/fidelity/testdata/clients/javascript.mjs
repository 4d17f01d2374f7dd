// Requests of the JavaScript client, one line of output for each: KUBECONFIG, and the namespace NS.
import { PassThrough } from 'node:stream';

import * as k8s from '@kubernetes/client-node';

const namespace = process.env.NS;
const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const widgets = { group: 'e2e.tributary.dev', version: 'v1', namespace, plural: 'widgets' };
const { MergePatch, StrategicMergePatch, JsonPatch, ServerSideApply } = k8s.PatchStrategy;
const as = (type) => k8s.setHeaderOptions('Content-Type', type);

// sorted is a value whose members are in order.
const sorted = (_, v) => (v && typeof v === 'object' && !Array.isArray(v)
  ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))) : v);

// step prints what a step returned, or the client's own exception.
async function step(name, run) {
  try {
    const result = await run();
    console.log(`${name}: ${JSON.stringify(result, sorted)}`);
  } catch (e) {
    console.log(`${name}: ${e.constructor.name} ${failure(e)}`);
  }
}

function failure(e) {
  let body = e.body;
  try {
    body = JSON.parse(body);
  } catch { /* it is an object, or no JSON */ }
  if (!body?.reason) return `${e.code ?? e.statusCode ?? ''} ${e.message.split('\n')[0]}`;
  const causes = (body.details?.causes ?? []).map((c) => `${c.reason} ${c.field}`);
  return `${e.code} ${body.reason} [${causes}]`; // each server has its own words
}

const settings = (name, data) => ({ metadata: { name, labels: { app: 'settings' } }, data });
const container = { name: 'web', image: 'registry.example/web:1' };
const pod = (name) => ({ metadata: { name }, spec: { containers: [container] } });
const deployment = (name) => ({
  apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace },
  spec: {
    replicas: 2, selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [container] } },
  },
});
const widget = (name, spec) => ({
  apiVersion: 'e2e.tributary.dev/v1', kind: 'Widget', metadata: { name, namespace }, spec,
});
const create = async (name, data) => (await core.createNamespacedConfigMap({ namespace, body: settings(name, data) })).data;
const names = (answer) => answer.items.map((o) => o.metadata.name);
const list = (options) => core.listNamespacedConfigMap({ namespace, ...options });

// events are those of a watch until one of a type.
function events(path, options, until) {
  return new Promise((resolve, reject) => {
    const seen = [];
    new k8s.Watch(config).watch(path, { timeoutSeconds: 20, ...options }, (type, object) => {
      seen.push(`${type} ${object.metadata?.name ?? object.message}`);
      if (type === until) resolve(seen);
    }, (e) => (e && e.name !== 'AbortError' ? reject(e) : resolve(seen)));
  });
}

// Objects of a type, and the errors of their names, versions and fields.
await step('create', () => create('one', { a: '1' }));
await step('create twice', () => create('one'));
await step('create invalid', () => create('Not A Name'));
await step('create elsewhere', () => core.createNamespacedConfigMap({ namespace: 'nowhere', body: settings('one') }));
await step('dry run', async () => (await core.createNamespacedConfigMap({
  namespace, dryRun: 'All', body: settings('dry', { a: '1' }),
})).data);
await step('field validation of no kind', async () => (await core.createNamespacedConfigMap({
  namespace, fieldValidation: 'None', body: settings('unknown', { a: '1' }),
})).data);
await step('get', async () => (await core.readNamespacedConfigMap({ namespace, name: 'one' })).data);
await step('get none', () => core.readNamespacedConfigMap({ namespace, name: 'none' }));
await step('secret', async () => (await core.createNamespacedSecret({
  namespace, body: { metadata: { name: 's' }, stringData: { a: 'b' } },
})).data);
const old = await core.readNamespacedConfigMap({ namespace, name: 'one' });
const patch = async (type, body) => (await core.patchNamespacedConfigMap({ namespace, name: 'one', body }, as(type))).data;
await step('merge patch', () => patch(MergePatch, { data: { b: '2' } }));
await step('json patch', () => patch(JsonPatch, [{ op: 'replace', path: '/data/a', value: '3' }]));
await step('json patch invalid', () => patch(JsonPatch, [{ op: 'test', path: '/data/a', value: '4' }]));
await step('patch of no type', () => patch('text/plain', { data: { b: '2' } }));
await step('replace old', () => core.replaceNamespacedConfigMap({ namespace, name: 'one', body: old }));
await step('replace', async () => (await core.replaceNamespacedConfigMap({
  namespace, name: 'one', body: settings('one', { c: '5' }),
})).data);

// Lists in pages, selectors, watches from a version, an informer.
for (let i = 0; i < 5; i++) await create(`page-${i}`);
await step('pages', async () => {
  const seen = [];
  let token;
  do {
    const page = await list({ labelSelector: 'app=settings', limit: 2, _continue: token });
    seen.push([names(page), page.metadata.remainingItemCount]);
    token = page.metadata._continue;
  } while (token);
  return seen;
});
await step('continue invalid', () => list({ limit: 2, _continue: 'abc' }).then(names));
await step('field selector', async () => names(await list({ fieldSelector: 'metadata.name=one' })));
await step('field selector invalid', () => list({ fieldSelector: 'data.a=b' }));
await step('label selector invalid', () => list({ labelSelector: 'a in b' }));
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const { resourceVersion } = (await list()).metadata;
await create('seen', { a: '1' });
await core.patchNamespacedConfigMap({ namespace, name: 'seen', body: { data: { a: '2' } } }, as(MergePatch));
await step('delete', async () => (await core.deleteNamespacedConfigMap({ namespace, name: 'seen' })).status);
await step('watch', () => events(path, { resourceVersion }, 'DELETED'));
await step('watch version invalid', () => events(path, { resourceVersion: 'abc' }, 'DELETED'));
await step('informer', () => new Promise((resolve, reject) => {
  const informer = k8s.makeInformer(config, path, () => list({ labelSelector: 'app=settings' }), 'app=settings');
  informer.on('error', reject);
  informer.on('delete', (o) => {
    resolve([o.metadata.name, ...informer.list().map((kept) => kept.metadata.name).sort()]);
    informer.stop(); // it calls this an error
  });
  informer.on('add', (o) => {
    if (o.metadata.name === 'page-4') core.deleteNamespacedConfigMap({ namespace, name: 'page-4' }).catch(reject);
  });
  informer.start().catch(reject);
}));
await step('delete collection', async () => (await core.deleteCollectionNamespacedConfigMap({
  namespace, labelSelector: 'app=settings',
})).kind);
await step('list', async () => names(await list({ labelSelector: 'app=settings' })));

// A deployment: the client that finds resources by discovery, strategic patches, apply, scale.
const images = (d) => d.spec.template.spec.containers.map((c) => `${c.name} ${c.image}`);
const side = { spec: { template: { spec: { containers: [{ name: 'side', image: 'registry.example/side:1' }] } } } };
const front = { namespace, name: 'front' };
await step('object create', async () => (await objects.create(deployment('front'))).spec.strategy);
await step('object create twice', () => objects.create(deployment('front')));
await step('object read', async () => (await objects.read(deployment('front'))).spec.replicas);
await step('object patch', async () => images(await objects.patch(
  { ...deployment('front'), ...side }, undefined, undefined, undefined, undefined, MergePatch,
)));
await step('object list', async () => names(await objects.list('apps/v1', 'Deployment', namespace)));
await step('object of no kind', () => objects.read({ ...deployment('front'), kind: 'None' }));
await step('strategic patch', async () => images(await apps.patchNamespacedDeployment(
  { ...front, body: { spec: { template: { spec: { containers: [container] } } } } }, as(StrategicMergePatch),
)));
await step('patch of a wrong type', () => apps.patchNamespacedDeployment(
  { ...front, body: { spec: { replicas: 'x' } } }, as(StrategicMergePatch),
));
await step('patch that is invalid', () => apps.patchNamespacedDeployment(
  { ...front, body: { spec: { replicas: -1 } } }, as(StrategicMergePatch),
).then((d) => d.spec.replicas));
await step('scale', async () => (await apps.patchNamespacedDeploymentScale(
  { ...front, body: { spec: { replicas: 5 } } }, as(MergePatch),
)).spec.replicas);
await step('scale, read', async () => (await apps.readNamespacedDeploymentScale(front)).spec);
await step('object delete', async () => (await objects.delete(deployment('front'))).status);

// Pods: binding, logs, exec, eviction, grace.
const web = { namespace, name: 'web' };
await step('pod', async () => (await core.createNamespacedPod({ namespace, body: pod('web') })).status.phase);
await step('logs', () => core.readNamespacedPodLog(web));
await step('logs, streamed', () => new k8s.Log(config).log(namespace, 'web', 'web', new PassThrough()));
await step('logs of no pod', () => core.readNamespacedPodLog({ namespace, name: 'none' }));
await step('exec', async () => {
  const silent = () => new PassThrough();
  try {
    await new k8s.Exec(config).exec(namespace, 'web', 'web', ['ls'], silent(), silent(), null, false);
  } catch (e) { // an event of the web socket
    throw new Error(e.message);
  }
});
await step('bind', async () => (await core.createNamespacedPodBinding({
  ...web, body: { metadata: { name: 'web' }, target: { kind: 'Node', name: 'node' } },
})).kind);
await step('bound', async () => (await core.readNamespacedPod(web)).spec.nodeName);
await step('pod status', async () => (await core.patchNamespacedPodStatus(
  { ...web, body: { status: { phase: 'Running' } } }, as(MergePatch),
)).status.phase);
await step('delete with grace', async () => (await core.deleteNamespacedPod({
  ...web, gracePeriodSeconds: 7,
})).metadata.deletionGracePeriodSeconds);
await step('evict', async () => (await core.createNamespacedPodEviction({
  ...web, body: { metadata: { name: 'web' }, deleteOptions: { gracePeriodSeconds: 0 } },
})).kind);
await step('evicted', () => core.readNamespacedPod(web));

// A custom resource.
const one = { ...widgets, name: 'w' };
const apply = async (manager, spec, options) => (await custom.patchNamespacedCustomObject(
  { ...one, fieldManager: manager, ...options, body: widget('w', spec) }, as(ServerSideApply),
)).spec;
await step('custom create', async () => (await custom.createNamespacedCustomObject({ ...widgets, body: widget('w', {}) })).spec);
await step('custom invalid', () => custom.createNamespacedCustomObject({ ...widgets, body: widget('v', { color: 'pink' }) }));
await step('custom scale of nothing', () => custom.getNamespacedCustomObjectScale(one));
await step('custom patch', async () => (await custom.patchNamespacedCustomObject(
  { ...one, body: { spec: { color: 'blue', replicas: 3 } } }, as(MergePatch),
)).spec);
await step('custom strategic patch', () => custom.patchNamespacedCustomObject(
  { ...one, body: { spec: { color: 'blue' } } }, as(StrategicMergePatch),
));
await step('custom scale', async () => (await custom.getNamespacedCustomObjectScale(one)).spec);
await step('custom scale, set', async () => (await custom.patchNamespacedCustomObjectScale(
  { ...one, body: { spec: { replicas: 4 } } }, as(MergePatch),
)).spec);
await step('custom list', async () => (await custom.listNamespacedCustomObject(widgets)).items.map((o) => o.spec));
await step('apply', () => apply('one', { replicas: 4 }));
await step('apply by another', () => apply('two', { replicas: 2 }));
await step('apply by force', () => apply('two', { replicas: 2 }, { force: true }));
await step('custom watch', () => events(
  `/apis/e2e.tributary.dev/v1/namespaces/${namespace}/widgets`, {}, 'ADDED',
));
await step('custom delete', async () => (await custom.deleteNamespacedCustomObject(one)).status);
await step('custom none', () => custom.getNamespacedCustomObject(one));
await step('custom resource unknown', () => custom.listClusterCustomObject({
  group: 'none.example', version: 'v1', plural: 'nones',
}));
await step('resources', async () => (await core.getAPIResources()).resources
  .map((r) => r.name).filter((name) => !name.includes('/')).sort());
await step('groups', async () => (await config.makeApiClient(k8s.ApisApi).getAPIVersions())
  .groups.some((g) => g.name === 'apps'));
await step('access', async () => (await config.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({
  body: { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } },
})).status.allowed);
process.exit(0); // watches may be open
