metadata description = 'One part of the product on Azure Functions: plan, storage, telemetry, the app, and the roles of its identity.'

@description('Name of the function app.')
param name string

param location string

@description('The subnet of the app, delegated to Microsoft.App/environments.')
param appSubnetId string

param endpointSubnetId string

param workspaceId string

param keyVaultName string

param serviceBusName string

@description('The roles of the app on the Service Bus namespace, as they are called in roles.json.')
param serviceBusRoles array

@description('The settings of this part: objects with name and value.')
param settings array

@description('Settings whose values are secrets of the vault: setting name to secret name.')
param secretSettings object = {}

@description('Address ranges that may reach the app and deploy to it. None: nobody, and the app cannot be deployed to.')
param allowedAddresses array = []

@description('Version of Python, one that Flex Consumption offers.')
param pythonVersion string = '3.12'

@minValue(40)
@maxValue(1000)
param maximumInstances int = 40

@allowed([
  2048
  4096
])
param instanceMemory int = 2048

var roles = loadJsonContent('roles.json')

// Worked out here and not taken from an output: names of role assignments have to be known beforehand.
var storageName = 'st${uniqueString(resourceGroup().id, name)}'

@description('What every part is told. Flex Consumption refuses the settings that other plans need for runtime and content.')
var commonSettings = [
  {
    name: 'AzureWebJobsStorage__accountName'
    value: storageName
  }
  {
    name: 'AzureWebJobsStorage__credential'
    value: 'managedidentity'
  }
  {
    name: 'APPLICATIONINSIGHTS_CONNECTION_STRING'
    value: insights.properties.ConnectionString
  }
]

var vaultSettings = [for setting in items(secretSettings): {
  name: setting.key
  value: '@Microsoft.KeyVault(SecretUri=https://${keyVaultName}${environment().suffixes.keyvaultDns}/secrets/${setting.value})'
}]

var allowed = [for (address, index) in allowedAddresses: {
  name: 'allowed-${index}'
  ipAddress: address
  action: 'Allow'
  priority: 100 + index
}]

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: keyVaultName
}

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: serviceBusName
}

module storage 'function-storage.bicep' = {
  name: '${name}-storage'
  params: {
    name: storageName
    appName: name
    location: location
    appSubnetId: appSubnetId
    endpointSubnetId: endpointSubnetId
  }
}

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' existing = {
  name: storageName
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: '${name}-insights'
  location: location
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspaceId
  }
}

resource plan 'Microsoft.Web/serverfarms@2024-04-01' = {
  // checkov:skip=CKV_AZURE_225: a zone that fails delays a wave and loses nothing; the state is in the database
  name: '${name}-plan'
  location: location
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
  }
}

resource app 'Microsoft.Web/sites@2024-04-01' = {
  // checkov:skip=CKV_AZURE_17: people sign in with tokens, not with client certificates
  // checkov:skip=CKV_AZURE_212: Flex Consumption starts instances as they are needed
  // checkov:skip=CKV_AZURE_213: Flex Consumption has no setting for it
  // checkov:skip=CKV_AZURE_222: closed unless addresses are given, and then open to those only
  name: name
  location: location
  kind: 'functionapp,linux'
  identity: {
    type: 'SystemAssigned'
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    virtualNetworkSubnetId: appSubnetId
    publicNetworkAccess: empty(allowedAddresses) ? 'Disabled' : 'Enabled'
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: storage.outputs.packagesUrl
          authentication: {
            type: 'SystemAssignedIdentity'
          }
        }
      }
      runtime: {
        name: 'python'
        version: pythonVersion
      }
      scaleAndConcurrency: {
        maximumInstanceCount: maximumInstances
        instanceMemoryMB: instanceMemory
      }
    }
    siteConfig: {
      appSettings: concat(commonSettings, settings, vaultSettings)
      ftpsState: 'Disabled'
      http20Enabled: true
      minTlsVersion: '1.2'
      ipSecurityRestrictions: allowed
      ipSecurityRestrictionsDefaultAction: 'Deny'
      scmIpSecurityRestrictionsUseMain: true
    }
  }
}

// Deployment signs in with Entra; the passwords that every site is born with are of no use.
resource publishing 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-04-01' = [for kind in [
  'ftp'
  'scm'
]: {
  parent: app
  name: kind
  properties: {
    allow: false
  }
}]

resource vaultRole 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(vault.id, app.id, roles['Key Vault Secrets User'])
  scope: vault
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Key Vault Secrets User'])
    principalId: app.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

resource storageRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in [
  'Storage Blob Data Owner'
  'Storage Table Data Contributor'
]: {
  name: guid(account.id, app.id, roles[role])
  scope: account
  dependsOn: [
    storage
  ]
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles[role])
    principalId: app.identity.principalId
    principalType: 'ServicePrincipal'
  }
}]

resource busRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in serviceBusRoles: {
  name: guid(serviceBus.id, app.id, roles[role])
  scope: serviceBus
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles[role])
    principalId: app.identity.principalId
    principalType: 'ServicePrincipal'
  }
}]

output name string = app.name
