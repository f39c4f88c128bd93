metadata description = 'Stage 2c: one worker as a container app that sleeps while there are no jobs. Deployed once for each worker id.'

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

@description('The id by which runbooks name this worker: lower-case letters, digits and hyphens. Names of container apps end at 32.')
@minLength(1)
@maxLength(14)
param workerId string

@description('The tenant this worker changes.')
param targetTenantId string

@description('Client id of the worker\'s app registration in that tenant.')
param appId string

@description('Name of the certificate in the vault with which the worker signs in to that tenant.')
param certificateName string

@description('The image, without the registry: name and tag, or name and digest.')
param image string

@minValue(1)
@maxValue(64)
param maxParallelism int = 2

@description('Seconds without work after which the worker ends by itself; 0: never.')
@minValue(0)
param idleTimeoutSeconds int = 300

var prefix = '${baseName}-${environmentName}'
var roles = loadJsonContent('../../modules/roles.json')

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: '${prefix}-sb'
}

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: '${prefix}-kv'
}

resource registry 'Microsoft.ContainerRegistry/registries@2023-07-01' existing = {
  name: '${baseName}${environmentName}acr'
}

resource workspace 'Microsoft.OperationalInsights/workspaces@2023-09-01' existing = {
  name: '${prefix}-logs'
}

resource network 'Microsoft.Network/virtualNetworks@2024-05-01' existing = {
  name: '${prefix}-vnet'
}

resource workerSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-05-01' existing = {
  parent: network
  name: 'snet-cloud-worker'
}

module jobs '../../modules/subscription.bicep' = {
  name: '${prefix}-worker-${workerId}-jobs'
  params: {
    serviceBusName: serviceBus.name
    topicName: 'worker-jobs'
    name: 'worker-${workerId}'
    condition: 'WorkerId = \'${workerId}\''
  }
}

// An identity of its own, older than the app: the first image can only be pulled by somebody who already may.
resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${prefix}-${workerId}'
  location: location
}

resource pullRole 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, identity.id, roles.AcrPull)
  scope: registry
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.AcrPull)
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource vaultRole 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(vault.id, identity.id, roles['Key Vault Secrets User'])
  scope: vault
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Key Vault Secrets User'])
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource busRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in [
  'Service Bus Data Receiver'
  'Service Bus Data Sender'
]: {
  name: guid(serviceBus.id, identity.id, roles[role])
  scope: serviceBus
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles[role])
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
  }
}]

// Shared by all workers: deploying it again changes nothing.
resource workers 'Microsoft.App/managedEnvironments@2026-01-01' = {
  name: '${prefix}-workers'
  location: location
  properties: {
    // By way of diagnostic settings: sending to the workspace directly takes its shared key.
    appLogsConfiguration: {
      destination: 'azure-monitor'
    }
    vnetConfiguration: {
      infrastructureSubnetId: workerSubnet.id
      internal: true
    }
    workloadProfiles: [
      {
        name: 'Consumption'
        workloadProfileType: 'Consumption'
      }
    ]
  }
}

resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'logs'
  scope: workers
  properties: {
    workspaceId: workspace.id
    logs: [
      {
        categoryGroup: 'allLogs'
        enabled: true
      }
    ]
  }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: '${prefix}-${workerId}-insights'
  location: location
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
  }
}

resource app 'Microsoft.App/containerApps@2026-01-01' = {
  name: '${prefix}-${workerId}'
  location: location
  dependsOn: [
    pullRole
    vaultRole
    busRoles
    jobs
  ]
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identity.id}': {}
    }
  }
  properties: {
    environmentId: workers.id
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      registries: [
        {
          server: registry.properties.loginServer
          identity: identity.id
        }
      ]
    }
    template: {
      terminationGracePeriodSeconds: 60
      containers: [
        {
          name: 'worker'
          image: '${registry.properties.loginServer}/${image}'
          resources: {
            cpu: json('0.5')
            memory: '1Gi'
          }
          env: [
            {
              name: 'WORKER_ID'
              value: workerId
            }
            {
              name: 'TARGET_TENANT_ID'
              value: targetTenantId
            }
            {
              name: 'APP_ID'
              value: appId
            }
            {
              name: 'SERVICE_BUS_NAMESPACE'
              value: '${serviceBus.name}.servicebus.windows.net'
            }
            {
              name: 'KEY_VAULT_NAME'
              value: vault.name
            }
            {
              name: 'CERT_NAME'
              value: certificateName
            }
            {
              name: 'MAX_PARALLELISM'
              value: string(maxParallelism)
            }
            {
              name: 'IDLE_TIMEOUT_SECONDS'
              value: string(idleTimeoutSeconds)
            }
            {
              name: 'SHUTDOWN_GRACE_SECONDS'
              value: '30'
            }
            {
              name: 'HEALTH_CHECK_PORT'
              value: '8080'
            }
            {
              name: 'AZURE_CLIENT_ID'
              value: identity.properties.clientId
            }
            {
              name: 'APPLICATIONINSIGHTS_CONNECTION_STRING'
              value: insights.properties.ConnectionString
            }
            {
              name: 'MATOOLKIT_LOG_FORMAT'
              value: 'json'
            }
          ]
          probes: [
            {
              type: 'Liveness'
              initialDelaySeconds: 10
              periodSeconds: 30
              timeoutSeconds: 5
              failureThreshold: 3
              httpGet: {
                path: '/health'
                port: 8080
              }
            }
          ]
        }
      ]
      scale: {
        minReplicas: 0
        maxReplicas: 1
        pollingInterval: 30
        cooldownPeriod: 300
        rules: [
          {
            name: 'jobs'
            custom: {
              type: 'azure-servicebus'
              identity: identity.id
              metadata: {
                namespace: serviceBus.name
                topicName: 'worker-jobs'
                subscriptionName: 'worker-${workerId}'
                messageCount: '1'
              }
            }
          }
        ]
      }
    }
  }
}

output appName string = app.name
