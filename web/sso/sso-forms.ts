import { type Static, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { SsoRole } from '../../domain/sso/sso-configuration.entity.ts';
import type { NewSsoConfiguration } from '../../domain/sso/sso-configuration.service.ts';

/** Fields of the forms that create a configuration, and change a draft. The role of new members comes on top. */
export const OIDC_FIELDS = {
  name: text(100),
  issuer: text(2_048),
  client_id: text(500),
  client_secret: text(2_000),
  domains: text(6_000),
};
export const SAML_FIELDS = {
  name: text(100),
  idp_metadata_url: text(2_048),
  idp_metadata_xml: text(262_144),
  domains: text(6_000),
  allow_idp_initiated: Type.Optional(enumOf(['on'])),
};
const OidcForm = strictObject(OIDC_FIELDS);
const SamlForm = strictObject(SAML_FIELDS);
type WithRole<Form> = Form & { default_role?: SsoRole };

/** A field of a form that is left empty is not given. */
export const readOidcForm = (form: WithRole<Static<typeof OidcForm>>): NewSsoConfiguration => ({
  type: 'oidc',
  ...readCommon(form),
  issuer: form.issuer,
  clientId: form.client_id,
  ...(form.client_secret === '' ? {} : { clientSecret: form.client_secret }),
});

export function readSamlForm(form: WithRole<Static<typeof SamlForm>>): NewSsoConfiguration {
  const [url, xml] = [form.idp_metadata_url.trim(), form.idp_metadata_xml.trim()];
  return {
    type: 'saml',
    ...readCommon(form),
    ...(url === '' ? {} : { idpMetadataUrl: url }),
    ...(xml === '' ? {} : { idpMetadataXml: xml }),
    allowIdpInitiated: form.allow_idp_initiated === 'on',
  };
}

const readCommon = ({ name, domains, default_role: role }: WithRole<{ name: string; domains: string }>) => ({
  name,
  domains: domains.split(/[\s,]+/).filter(Boolean),
  ...(role === undefined ? {} : { defaultRole: role }),
});
