metadata description = 'Stage 2b: the admin API. Comes after 2a, whose database it uses.'

@description('As in the shared stage.')
@minLength(3)
@maxLength(12)
param baseName string

@description('As in the shared stage.')
@allowed([
  'dev'
  'prod'
])
param environmentName string

param location string = resourceGroup().location

@description('The tenant whose people sign in.')
param entraIdTenantId string = subscription().tenantId

@description('Client id of the app registration of the API.')
param entraIdClientId string

@description('What tokens are made out to: the Application ID URI, as a rule api://CLIENT-ID.')
param entraIdAudience string = 'api://${entraIdClientId}'

@description('The workers there are; publishing refuses others.')
param workerIds array

@description('Settings of data sources that are secrets of the vault, for previews: setting name to secret name.')
param sourceSecrets object = {}

@description('Address ranges of operators, and those from which the app is deployed. None: nobody reaches the API.')
param allowedAddresses array = []

var prefix = '${baseName}-${environmentName}'

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: '${prefix}-sb'
}

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: '${prefix}-kv'
}

resource workspace 'Microsoft.OperationalInsights/workspaces@2023-09-01' existing = {
  name: '${prefix}-logs'
}

resource sqlServer 'Microsoft.Sql/servers@2023-08-01' existing = {
  name: '${prefix}-sql'
}

resource network 'Microsoft.Network/virtualNetworks@2024-05-01' existing = {
  name: '${prefix}-vnet'
}

resource appSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-05-01' existing = {
  parent: network
  name: 'snet-admin-api'
}

resource endpointSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-05-01' existing = {
  parent: network
  name: 'snet-private-endpoints'
}

// No password is in it: who connects is known by the identity of the app.
resource connectionString 'Microsoft.KeyVault/vaults/secrets@2024-11-01' = {
  // checkov:skip=CKV_AZURE_41: an address without a password does not grow old
  parent: vault
  name: 'admin-api-sql-connection-string'
  properties: {
    contentType: 'text/plain'
    value: 'Server=tcp:${sqlServer.properties.fullyQualifiedDomainName},1433;Database=matoolkit;Authentication=Active Directory Managed Identity;Encrypt=yes;'
  }
}

module api '../../modules/function-app.bicep' = {
  name: '${prefix}-admin-api'
  dependsOn: [
    connectionString
  ]
  params: {
    name: '${prefix}-admin-api'
    location: location
    appSubnetId: appSubnet.id
    endpointSubnetId: endpointSubnet.id
    workspaceId: workspace.id
    keyVaultName: vault.name
    serviceBusName: serviceBus.name
    serviceBusRoles: [
      'Service Bus Data Sender'
    ]
    allowedAddresses: allowedAddresses
    settings: [
      {
        name: 'MATOOLKIT_PARTS'
        value: 'admin-api'
      }
      {
        name: 'AdminApi__ServiceBusNamespace'
        value: '${serviceBus.name}.servicebus.windows.net'
      }
      {
        name: 'Orchestrator__WorkerIds'
        value: join(workerIds, ',')
      }
      {
        name: 'AzureAd__Instance'
        value: environment().authentication.loginEndpoint
      }
      {
        name: 'AzureAd__TenantId'
        value: entraIdTenantId
      }
      {
        name: 'AzureAd__ClientId'
        value: entraIdClientId
      }
      {
        name: 'AzureAd__Audience'
        value: entraIdAudience
      }
    ]
    secretSettings: union({
      AdminApi__SqlConnectionString: 'admin-api-sql-connection-string'
    }, sourceSecrets)
  }
}

output apiName string = api.outputs.name
