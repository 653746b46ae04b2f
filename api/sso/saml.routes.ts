import formbody from '@fastify/formbody';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { ServiceProvider } from '../../domain/sso/saml/saml-client.ts';
import { escapeHtml } from '../../platform/escape-html.ts';
import { clientOf } from '../people/client-of.ts';
import { localPath } from '../people/local-path.ts';
import { id, postProblems, problems, strictObject, text } from '../schemas.ts';
import { SsoConfirm } from './sso.schemas.ts';
import { createSsoCookies } from './sso-cookies.ts';
import {
  callbackResponses,
  createAnswers,
  DEFAULT_TARGET,
  type SsoLoginRouteDependencies,
  showErrorsInBrowsers,
} from './sso-login.routes.ts';

const tags = ['SSO'];
/** Names as SAML bindings section 3.5 has them. */
const SamlCallback = strictObject({
  SAMLResponse: text(400_000, { minLength: 1 }),
  RelayState: Type.Optional(text(2_000)),
});
/** A NameID must last: a transient one would be a new person at every login. */
const NAME_ID_FORMATS = [
  'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
];
/** Attributes by name, and whether a login needs them. */
const REQUESTED_ATTRIBUTES = { email: true, displayName: false };
const METADATA_TYPE = 'application/samlmetadata+xml';

export const samlRoutes =
  (dependencies: SsoLoginRouteDependencies): FastifyPluginAsyncTypebox =>
  async (app) => {
    const { ssoLogins } = dependencies;
    const ssoCookies = createSsoCookies(dependencies.cookies);
    const answer = createAnswers({ ...dependencies, ssoCookies });
    await app.register(formbody, { bodyLimit: 1024 * 1024 });
    showErrorsInBrowsers(app);

    async function finish(
      request: FastifyRequest,
      reply: FastifyReply,
      { SAMLResponse, RelayState }: { SAMLResponse: string; RelayState?: string },
      serviceProviderId: string | null,
    ) {
      const input = {
        samlResponse: SAMLResponse,
        relayState: RelayState,
        serviceProviderId,
        browserToken: ssoCookies.readBrowser(request),
        redirectTo: localPath(RelayState, DEFAULT_TARGET),
      };
      return answer(request, reply, await ssoLogins.finishSaml(input, clientOf(request)));
    }

    const response = callbackResponses(postProblems());

    app.post(
      '/auth/sso/saml/callback',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.finishSaml',
          summary: 'Finish signing in through SAML',
          description:
            'Identity providers post their responses here as a form, or at the address of the configuration. Programs may send JSON.',
          tags,
          body: SamlCallback,
          response,
        },
      },
      (request, reply) => finish(request, reply, request.body, null),
    );

    app.post(
      '/auth/sso/saml/:configurationId/acs',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.finishSamlOfConfiguration',
          summary: 'Finish signing in through SAML, at the address of one configuration',
          tags,
          params: strictObject({ configurationId: id('Id of the configuration (sso_…).') }),
          body: SamlCallback,
          response,
        },
      },
      (request, reply) => finish(request, reply, request.body, request.params.configurationId),
    );

    app.post(
      '/auth/sso/saml/confirm',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.confirm',
          summary: 'Agree to a login that began at the identity provider',
          tags,
          body: SsoConfirm,
          response,
        },
      },
      async (request, reply) => {
        const input = { token: request.body.confirm_token, browserToken: ssoCookies.readBrowser(request) };
        return answer(request, reply, await ssoLogins.confirm(input, clientOf(request)));
      },
    );

    app.get(
      '/auth/sso/saml/metadata/:organizationId',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.getMetadata',
          summary: 'Get the SAML metadata of this service, for the identity provider of an organization',
          tags,
          params: strictObject({ organizationId: id('Id of the organization (org_…).') }),
          querystring: strictObject({
            configuration: Type.Optional(
              id('Id of the configuration (sso_…). Default: the active one, or the newest.'),
            ),
          }),
          response: {
            200: { description: 'SAML metadata.', content: { [METADATA_TYPE]: { schema: text(20_000) } } },
            ...problems(),
          },
        },
      },
      async ({ params, query }, reply) => {
        const provider = await ssoLogins.findServiceProvider(params.organizationId, query.configuration);
        return reply.type(METADATA_TYPE).send(renderMetadata(provider));
      },
    );
  };

function renderMetadata({
  entityId,
  acsUrl,
  sharedAcsUrl,
}: ServiceProvider & { sharedAcsUrl: string }): string {
  const consumer = (url: string, index: number) =>
    `<md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="${escapeHtml(url)}" index="${index}" isDefault="${index === 0}"/>`;
  const attributes = Object.entries(REQUESTED_ATTRIBUTES).map(
    ([name, isRequired]) =>
      `<md:RequestedAttribute Name="${name}" NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:basic" isRequired="${isRequired}"/>`,
  );
  const formats = NAME_ID_FORMATS.map((format) => `<md:NameIDFormat>${format}</md:NameIDFormat>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${escapeHtml(entityId)}"><md:SPSSODescriptor AuthnRequestsSigned="false" WantAssertionsSigned="true" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">${formats.join('')}${consumer(acsUrl, 0)}${consumer(sharedAcsUrl, 1)}<md:AttributeConsumingService index="0" isDefault="true"><md:ServiceName xml:lang="en">Agent email</md:ServiceName>${attributes.join('')}</md:AttributeConsumingService></md:SPSSODescriptor></md:EntityDescriptor>
`;
}
